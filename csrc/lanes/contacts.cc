#include "lanes/contacts.h"

#include <algorithm>

#include "lanes/contact_source.h"

namespace pyfastenv::lanes {

namespace {

mjContact MakeContact(const ContactView& view, const Plan& plan, const mjModel& m) {
  const Pair& pair = plan.tables().pair[view.pair];
  const ContactSource& source = plan.derivation().contact(view.pair);
  mjContact contact{};
  contact.dist = view.dist;
  std::copy_n(view.pos, 3, contact.pos);
  std::copy_n(view.frame, 9, contact.frame);
  contact.includemargin = SourceOfContact(m, {pair.geom1, pair.geom2, source.explicit_pair}).margin;
  CombineFriction(source, m.geom_friction, contact.friction);
  CombineSolver(source, m.geom_solref, m.geom_solimp, contact.solref, contact.solimp);
  if (source.explicit_pair >= 0) {
    std::copy_n(m.pair_solreffriction + ptrdiff_t{mjNREF} * source.explicit_pair, mjNREF,
                contact.solreffriction);
  }
  contact.dim = source.condim;
  contact.geom[0] = contact.geom1 = pair.geom1;
  contact.geom[1] = contact.geom2 = pair.geom2;
  std::fill_n(contact.flex, 2, -1);
  std::fill_n(contact.elem, 2, -1);
  std::fill_n(contact.vert, 2, -1);
  contact.efc_address = view.first_row;
  return contact;
}

}  // namespace

std::string UnsupportedContacts(const mjModel& m) {
  const auto any = [](const mjtNum* gap, auto count) {
    return std::any_of(gap, gap + count, [](mjtNum x) { return x != 0; });
  };
  return any(m.geom_gap, m.ngeom) || any(m.pair_gap, m.npair) ? "contacts of geoms with gaps" : "";
}

void ListContacts(const LaneStepper& lanes, int lane, const mjModel& m, mjData& d) {
  d.ncon = lanes.CountContacts(lane);
  d.contact = static_cast<mjContact*>(d.arena);
  d.parena = sizeof(mjContact) * static_cast<size_t>(d.ncon);
  for (int k = 0; k < d.ncon; ++k) {
    d.contact[k] = MakeContact(lanes.Contact(k, lane), lanes.plan(), m);
  }
}

void WriteContacts(const LaneStepper& lanes, int lane, const mjModel& m, mjData& d) {
  // in the arena, as the engine's own, which begins with contacts and takes it back when it looks
  // for contacts the next time
  ListContacts(lanes, lane, m, d);
  d.nefc = lanes.CountRows(lane);
  d.efc_force = reinterpret_cast<mjtNum*>(d.contact + d.ncon);
  d.parena += sizeof(mjtNum) * static_cast<size_t>(d.nefc);
  lanes.ReadRowForces(lane, d.efc_force);
}

}  // namespace pyfastenv::lanes
