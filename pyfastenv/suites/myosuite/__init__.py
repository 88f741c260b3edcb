"""MyoSuite's tasks of muscles (Caggiano et al. 2022) as own tasks: arms, hands, legs and torso."""
