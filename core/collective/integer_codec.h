// Codecs of integers: sums, minima and maxima as they are, averages in wider lanes.
#pragma once

#include "core/collective/codec.h"

namespace erar {

// The reduction is one that make_codec() has accepted, of integers.
std::unique_ptr<Codec> make_integer_codec(const Reduction& reduction, unsigned ranks);

}  // namespace erar
