// A small creature with two legs, and variations on it.
#pragma once

#include <ostream>
#include <string>

namespace pyfastenv::lanes {

/// The model in pieces that variants replace.
struct Pieces {
  std::string option = "timestep='0.005'";
  std::string flag;
  std::string world;  // beside floor and creature
  std::string floor = "<geom type='plane' size='5 5 1'/>";
  std::string root = "<freejoint/>";
  std::string torso = "<geom type='capsule' fromto='-.2 0 0 .2 0 0' size='.08'/>";
  std::string geom;  // defaults
  std::string joint = "damping='.5' armature='.02' limited='true'";
  std::string hip = "range='-40 40'";
  std::string knee = "range='10 80'";
  std::string actuators =
      "<motor joint='hip1' gear='20'/><motor joint='knee1' gear='20'/>"
      "<motor joint='hip2' gear='20'/>";
  std::string motor = "ctrllimited='true' ctrlrange='-1 1'";
  std::string rest;  // after the actuators
};

std::string Xml(const Pieces& p);

struct Variant {
  const char* name;
  void (*change)(Pieces&);
};
inline void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

/// Joints of a root that moves in a plane.
inline constexpr char kPlanar[] =
    "<joint type='slide' axis='1 0 0' limited='false'/><joint type='slide' axis='0 0 1' "
    "limited='false'/><joint type='hinge' axis='0 1 0' limited='false' pos='0 0 .05'/>";

/// Two geoms of a type in one body.
std::string Several(const std::string& type, const std::string& size);

}  // namespace pyfastenv::lanes
