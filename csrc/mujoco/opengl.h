// OpenGL's functions, which MuJoCo looks up once per process: where nothing can stop it.
//
// It does so in the first mjr_makeContext, in the initialiser of a static (mjGladLoadGL in its
// glad/loader.cc). An error of the engine there, which every trap leaves by longjmp, leaves that
// static "being initialised": every later mjr_makeContext waits for ever (or aborts the process,
// in the same thread), and those of MuJoCo's Python package wait with the GIL.
#pragma once

namespace pyfastenv {

/// Has MuJoCo look up OpenGL's functions in the context that is current in this thread. Call it
/// without the GIL: where someone else's attempt was left as above, it does not return.
/// Throws MujocoError: there is no context, or one that MuJoCo cannot use.
void LoadOpenGl();

}  // namespace pyfastenv
