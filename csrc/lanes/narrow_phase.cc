#include "lanes/narrow_phase.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "lanes/height_field.h"
#include "mujoco/error_trap.h"

namespace pyfastenv::lanes {

static_assert(sizeof(ContactPoint) == sizeof(mjPreContact) &&
                  std::is_trivially_copyable_v<mjPreContact>,
              "a contact point is MuJoCo's");
static_assert(kMaxPointsOfPair == mjMAXCONPAIR);

namespace {

struct DeleteModel {
  void operator()(mjModel* m) const { mj_deleteModel(m); }
};

const mjModel& TwoSpheres() {
  // never deleted: a daemon thread may be in a rollout while the process ends
  static const mjModel& model = *[] {
    constexpr char kXml[] =
        "<mujoco><size memory='100K'/><worldbody><geom size='1'/><body><freejoint/><geom size='1'/>"
        "</body></worldbody></mujoco>";
    mjVFS vfs;
    mj_defaultVFS(&vfs);
    mj_addBufferVFS(&vfs, "two_spheres.xml", kXml, sizeof(kXml) - 1);
    std::unique_ptr<mjModel, DeleteModel> m(mj_loadXML("two_spheres.xml", &vfs, nullptr, 0));
    mj_deleteVFS(&vfs);
    if (m == nullptr) throw std::bad_alloc();
    return m.release();
  }();
  return model;
}

}  // namespace

NarrowPhase::NarrowPhase(std::shared_ptr<const mjModel> model, const Tables& tables)
    : model_(std::move(model)),
      header_(*model_),
      tables_(tables),
      separation_(*model_, tables_),
      rays_(*model_, tables_),
      data_(MakeData(*model_)),
      touching_(MakeData(TwoSpheres())) {
  mj_kinematics(&TwoSpheres(), touching_.get());
  of_lanes_.fill(model_.get());
  geom_size_.resize(3 * static_cast<size_t>(model_->ngeom));
}

void NarrowPhase::SetModels(const mjModel* const* models, int count) {
  std::fill(std::copy_n(models, count, of_lanes_.begin()), of_lanes_.end(), models[0]);
}

// The plan's model with what ModelImage leaves to be read where it is needed.
const mjModel& NarrowPhase::ModelOf(int lane) {
  const mjModel& own = *of_lanes_[static_cast<size_t>(lane)];
  header_.mesh_extrema = own.mesh_extrema;
  header_.mesh_graph = own.mesh_graph;
  header_.mesh_polynum = own.mesh_polynum;
  header_.mesh_polyadr = own.mesh_polyadr;
  header_.mesh_polynormal = own.mesh_polynormal;
  header_.mesh_polyvertadr = own.mesh_polyvertadr;
  header_.mesh_polyvertnum = own.mesh_polyvertnum;
  header_.mesh_polyvert = own.mesh_polyvert;
  header_.mesh_polymapadr = own.mesh_polymapadr;
  header_.mesh_polymapnum = own.mesh_polymapnum;
  header_.mesh_polymap = own.mesh_polymap;
  return header_;
}

// MuJoCo's convex collisions work in a buffer of the thread's if it has one, which mj_collision
// takes back when it is done. An engine error in there leaves it, and then it may be anybody's
// memory.
void NarrowPhase::ClearBuffer() {
  mj_collision(&TwoSpheres(), touching_.get());
  has_cleared_buffer_ = true;
}

template <class F>
bool NarrowPhase::Run(const F& call) {
  try {
    Trapped(call);
    return true;
  } catch (const MujocoError&) {
    mj_resetData(model_.get(), data_.get());  // what it had taken from the stack is free again
    has_cleared_buffer_ = false;
    return false;
  }
}

int NarrowPhase::Collide(void* self, int lane, int pair_index, const double* pos1,
                         const double* mat1, const double* pos2, const double* mat2,
                         ContactPoint* points) {
  auto& that = *static_cast<NarrowPhase*>(self);
  if (that.separation_.IsCertain(pair_index, pos1, mat1, pos2, mat2)) return 0;
  const mjModel& m = that.ModelOf(lane);
  const Pair& pair = that.tables_.pair[pair_index];
  mjPreContact contacts[kMaxPointsOfPair];
  int count =
      CollideHeightField(m, pair.geom1, pos1, mat1, pair.geom2, pos2, mat2, pair.reach, contacts);
  if (count < 0) count = that.AskMujoco(m, pair, pos1, mat1, pos2, mat2, contacts);
  if (count < 0) return -1;
  that.separation_.Note(pair_index, count);
  std::memcpy(points, contacts, sizeof(ContactPoint) * static_cast<size_t>(count));
  return count;
}

int NarrowPhase::AskMujoco(const mjModel& m, const Pair& pair, const double* pos1,
                           const double* mat1, const double* pos2, const double* mat2,
                           mjPreContact* contacts) {
  if (!has_cleared_buffer_) ClearBuffer();
  mjData& d = *data_;
  std::copy_n(pos1, 3, d.geom_xpos + 3 * pair.geom1);
  std::copy_n(mat1, 9, d.geom_xmat + 9 * pair.geom1);
  std::copy_n(pos2, 3, d.geom_xpos + 3 * pair.geom2);
  std::copy_n(mat2, 9, d.geom_xmat + 9 * pair.geom2);
  const mjfCollision function = mjCOLLISIONFUNC[m.geom_type[pair.geom1]][m.geom_type[pair.geom2]];
  int count = 0;
  const bool ran =
      Run([&] { count = function(&m, &d, contacts, pair.geom1, pair.geom2, pair.reach); });
  return ran ? count : -1;
}

Positions NarrowPhase::PositionsOf(void* self) {
  mjData& d = *static_cast<NarrowPhase*>(self)->data_;
  return {d.qpos, d.mocap_pos, d.mocap_quat};
}

int NarrowPhase::List(void* self, int lane, const ListedContact** contacts) {
  auto& that = *static_cast<NarrowPhase*>(self);
  const mjModel& m = that.ModelOf(lane);
  mjData& d = *that.data_;
  const bool ran = that.Run([&] {
    mj_kinematics(&m, &d);
    mj_collision(&m, &d);
  });
  if (!ran) return -1;
  that.listed_.clear();
  for (const mjContact& contact : std::span(d.contact, static_cast<size_t>(d.ncon))) {
    if (contact.dist >= contact.includemargin) continue;
    ListedContact& listed = that.listed_.emplace_back();
    listed = {contact.geom[0], contact.geom[1], contact.dist, {}, {}};
    std::copy_n(contact.pos, 3, listed.pos);
    std::copy_n(contact.frame, 3, listed.normal);
  }
  *contacts = that.listed_.data();
  return static_cast<int>(that.listed_.size());
}

double NarrowPhase::Cast(void* self, int lane, const RayTarget& target, const GeomPlace& place,
                         const double* from, const double* along) {
  auto& that = *static_cast<NarrowPhase*>(self);
  mjData& d = *that.data_;
  const ptrdiff_t geom = target.geom;
  if (that.model_->geom_type[geom] != mjGEOM_MESH) {
    return that.rays_.Cast(target, place, from, along, d);
  }
  mjModel m =
      *that.of_lanes_[static_cast<size_t>(lane)];  // of whose mesh the plan may know nothing
  m.geom_size = that.geom_size_.data();
  std::copy_n(place.size, 3, m.geom_size + 3 * geom);
  std::copy_n(place.pos, 3, d.geom_xpos + 3 * geom);
  std::copy_n(place.mat, 9, d.geom_xmat + 9 * geom);
  double x = std::numeric_limits<double>::quiet_NaN();
  that.Run([&] { x = mj_rayMesh(&m, &d, target.geom, from, along, nullptr); });
  return x;
}

}  // namespace pyfastenv::lanes
