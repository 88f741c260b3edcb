// sensordata of all sensors that lanes compute, at the end of an evaluation.
#include "lanes/stages/blas.h"
#include "lanes/stages/stages.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

namespace {

// The first row of a limit, from either side, in a lane; -1 if it has none. Limits' rows end where
// those of contacts begin.
int RowOfLimit(const Tables& t, const Scratch& s, int limit, int lane) {
  const int first = FirstInequality(t);
  const int end = s.contacts.max_count > 0 ? s.contacts.first_row[0] : s.rows.max_count;
  for (int r = first; r < end && (s.rows.valid[r] >> lane & 1) != 0; ++r) {
    if (s.rows.limit[r - first][lane] / 2 == limit) return r;
  }
  return -1;
}

double SenseLimit(const Tables& t, Scratch& s, const Sensor& sensor, int lane) {
  const Rows& rows = s.rows;
  const int r = RowOfLimit(t, s, sensor.id, lane);
  if (r < 0) return 0;
  if (sensor.kind == SensorKind::kLimitPosition) return At(rows.violation[r], lane);
  if (sensor.kind == SensorKind::kLimitForce) return At(rows.force[r], lane);
  if (t.asks_for_constraints) return At(rows.velocity[r], lane);
  const double velocity = At(Dot(rows.J + r * t.nv, s.qvel, t.nv), lane);
  // zeros of a rope's Jacobian may have another sign in lanes
  if (velocity == 0 && t.limit[sensor.id].kind == LimitKind::kTendon) s.redo |= 1u << lane;
  return velocity;
}

int CountContacts(const Tables& t, const Scratch& s, const Sensor& sensor, int lane) {
  const unsigned char* counts = t.sensors.counted + sensor.id;
  int count = 0;
  for (int k = 0; k < s.contacts.count[lane]; ++k) count += counts[s.contacts.pair[k][lane]];
  return count;
}

// Every contact that has a place in the sensor's numbers says how many there are.
void SenseContacts(const Tables& t, Scratch& s, const Sensor& sensor) {
  Lane* out = s.sensordata + sensor.adr;
  for (int l = 0; l < kWidth; ++l) {
    const int count = CountContacts(t, s, sensor, l);
    for (int i = 0; i < sensor.dim; ++i) At(out[i], l) = i < count ? count : 0;
  }
  for (int i = 0; i < sensor.dim && sensor.cutoff > 0; ++i) out[i] = CutOff(sensor, out[i]);
}

}  // namespace

void ComputeSensors(const Tables& t, Scratch& s) {
  if (t.sensors.external_forces) ExternalForces(t, s);
  Run(RecordedStage::kSensors, t, s);
  for (int i = 0; i < t.sensors.first_range; ++i) {
    const Sensor& sensor = t.sensors.sensor[i];
    if (IsOfMotion(sensor.kind)) continue;
    if (sensor.kind == SensorKind::kContactCount) {
      SenseContacts(t, s, sensor);
      continue;
    }
    Lane& out = s.sensordata[sensor.adr];
    for (int l = 0; l < kWidth; ++l) {
      At(out, l) = sensor.kind == SensorKind::kClock ? s.time[l] : SenseLimit(t, s, sensor, l);
    }
    if (sensor.cutoff > 0) out = CutOff(sensor, out);
  }
  CastRays(t, s);
}

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
