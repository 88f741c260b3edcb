// Sine and cosine in lanes, with the C library's bits.
#pragma once

#include "lanes/stages/lane.h"

namespace pyfastenv::lanes::PYFASTENV_VARIANT {

/// sin(x) and cos(x) as the C library rounds them. `by_series`: in all lanes at once where that is
/// certain to give the same, else every lane by the library.
void SineCosine(bool by_series, Lane x, Lane& sine, Lane& cosine);

/// Whether the series may be used: there is one for this width, and it agrees with the library in
/// some thousand values.
bool SeriesAgrees();

}  // namespace pyfastenv::lanes::PYFASTENV_VARIANT
