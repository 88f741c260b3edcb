"""Pictures of MuJoCo scenes without OpenGL."""

from pyfastenv.rendering.renderer import Renderer

__all__ = ["Renderer"]
