// Whether this process is a forked child of the one in which something was made.
#pragma once

namespace pyfastenv {

/// Changes in a forked child: what was made under another generation has lost its threads.
unsigned ForkGeneration();

}  // namespace pyfastenv
