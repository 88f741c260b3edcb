"""After an exception that escaped from mj_loadXML, the next model of the process never loads."""

import mujoco

try:
    mujoco.MjModel.from_xml_path("model_without_file.xml")
except RuntimeError as error:
    print(error)  # Caught an unknown exception!
mujoco.MjModel.from_xml_string("<mujoco/>")
print("not reached")
