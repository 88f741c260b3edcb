"""Pictures of MuJoCo scenes without OpenGL."""
