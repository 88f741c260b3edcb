#include "creature.h"

namespace pyfastenv::lanes {

std::string Xml(const Pieces& p) {
  const auto leg = [&](const std::string& n, const std::string& x) {
    return "<body pos='" + x + " 0 0'><joint name='hip" + n + "' type='hinge' axis='0 1 0' " +
           p.hip + "/><geom name='thigh" + n +
           "' type='capsule' fromto='0 .02 -.03 0 .05 -.2' size='.05'/>"
           "<body name='shin" +
           n + "' pos='0 .05 -.2'><joint name='knee" + n +
           "' type='hinge' axis='.1 -1 0' pos='.01 0 .01' " + p.knee +
           "/>"
           "<geom name='shin" +
           n +
           "' type='capsule' fromto='.01 .02 -.01 .03 0 -.25' size='.04'/>"
           "<body pos='.03 0 -.25'><geom name='foot" +
           n +
           "' type='sphere' size='.06'/>"
           "<site name='sole" +
           n + "' pos='0 0 -.05' euler='10 20 0'/></body></body></body>";
  };
  return "<mujoco><option " + p.option + "><flag " + p.flag + "/></option><default><geom " +
         p.geom + "/><joint " + p.joint + "/><motor " + p.motor + "/></default><worldbody>" +
         p.floor + p.world + "<body name='torso' pos='0 0 .45'>" + p.root + p.torso +
         leg("1", "-.2") + leg("2", ".2") + "</body></worldbody><actuator>" + p.actuators +
         "</actuator>" + p.rest + "</mujoco>";
}

std::string Several(const std::string& type, const std::string& size) {
  const std::string geom = "<geom type='" + type + "' size='" + size + "' ";
  return geom + "euler='20 70 0'/>" + geom + "pos='.15 .1 .05' euler='80 0 30'/>";
}

}  // namespace pyfastenv::lanes
