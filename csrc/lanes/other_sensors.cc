#include "lanes/other_sensors.h"

#include <algorithm>

namespace pyfastenv::lanes {

namespace {

template <class T>
std::vector<T> Rows(const T* array, int columns, const std::vector<int>& which) {
  std::vector<T> rows;
  for (const int row : which) {
    const T* begin = array + ptrdiff_t{columns} * row;
    rows.insert(rows.end(), begin, begin + columns);
  }
  return rows;
}

template <class T>
T* Begin(const std::vector<T>& rows) {
  return const_cast<T*>(rows.data());
}

}  // namespace

OtherSensors::OtherSensors(const mjModel& m, const std::vector<int>& sensors)
    : type_(Rows(m.sensor_type, 1, sensors)),
      datatype_(Rows(m.sensor_datatype, 1, sensors)),
      needstage_(Rows(m.sensor_needstage, 1, sensors)),
      objtype_(Rows(m.sensor_objtype, 1, sensors)),
      objid_(Rows(m.sensor_objid, 1, sensors)),
      reftype_(Rows(m.sensor_reftype, 1, sensors)),
      refid_(Rows(m.sensor_refid, 1, sensors)),
      intprm_(Rows(m.sensor_intprm, mjNSENS, sensors)),
      dim_(Rows(m.sensor_dim, 1, sensors)),
      adr_(Rows(m.sensor_adr, 1, sensors)),
      history_(Rows(m.sensor_history, 2, sensors)),
      historyadr_(Rows(m.sensor_historyadr, 1, sensors)),
      plugin_(Rows(m.sensor_plugin, 1, sensors)),
      cutoff_(Rows(m.sensor_cutoff, 1, sensors)),
      noise_(Rows(m.sensor_noise, 1, sensors)),
      delay_(Rows(m.sensor_delay, 1, sensors)),
      interval_(Rows(m.sensor_interval, 2, sensors)) {
  of_contacts_ = std::any_of(type_.begin(), type_.end(), [](int type) {
    return type == mjSENS_TOUCH || type == mjSENS_CONTACT || type == mjSENS_TACTILE;
  });
  vanish_ = true;
  for (size_t i = 0; i < type_.size(); ++i) {
    const bool contact = type_[i] == mjSENS_CONTACT;
    constexpr int kNetForce = 3;  // in the world's frame; which has a normal even without contacts
    constexpr int kInOwnFrame =
        1 << mjCONDATA_FOUND | 1 << mjCONDATA_FORCE | 1 << mjCONDATA_TORQUE | 1 << mjCONDATA_DIST;
    const bool net = contact && intprm_[mjNSENS * i + 1] == kNetForce;
    vanish_ = vanish_ && !net && (contact || type_[i] == mjSENS_TOUCH);
    of_frames_ = of_frames_ || net || (contact && (intprm_[mjNSENS * i] & ~kInOwnFrame) != 0);
    of_cameras_ = of_cameras_ || type_[i] == mjSENS_CAMPROJECTION || objtype_[i] == mjOBJ_CAMERA ||
                  reftype_[i] == mjOBJ_CAMERA;
    of_quaternions_ = of_quaternions_ || of_cameras_ || type_[i] == mjSENS_INSIDESITE ||
                      type_[i] == mjSENS_TACTILE;
  }
}

mjModel OtherSensors::Of(const mjModel& m) const {
  mjModel header = m;
  header.nsensor = static_cast<mjtSize>(type_.size());
  header.sensor_type = Begin(type_);
  header.sensor_datatype = Begin(datatype_);
  header.sensor_needstage = Begin(needstage_);
  header.sensor_objtype = Begin(objtype_);
  header.sensor_objid = Begin(objid_);
  header.sensor_reftype = Begin(reftype_);
  header.sensor_refid = Begin(refid_);
  header.sensor_intprm = Begin(intprm_);
  header.sensor_dim = Begin(dim_);
  header.sensor_adr = Begin(adr_);
  header.sensor_history = Begin(history_);
  header.sensor_historyadr = Begin(historyadr_);
  header.sensor_plugin = Begin(plugin_);
  header.sensor_cutoff = Begin(cutoff_);
  header.sensor_noise = Begin(noise_);
  header.sensor_delay = Begin(delay_);
  header.sensor_interval = Begin(interval_);
  return header;
}

void OtherSensors::Copy(const mjtNum* from, mjtNum* to) const {
  for (size_t i = 0; i < adr_.size(); ++i) std::copy_n(from + adr_[i], dim_[i], to + adr_[i]);
}

void OtherSensors::SetZero(mjtNum* to) const {
  for (size_t i = 0; i < adr_.size(); ++i) std::fill_n(to + adr_[i], dim_[i], 0.0);
}

}  // namespace pyfastenv::lanes
