// Codecs of floats: sums and averages in block floating point, minima and maxima in ordered lanes.
#pragma once

#include "core/collective/codec.h"

namespace erar {

// The reduction is one that make_codec() has accepted, of floats.
std::unique_ptr<Codec> make_sum_codec(const Reduction& reduction, unsigned ranks,
                                      Feedback* feedback);
std::unique_ptr<Codec> make_extreme_codec(const Reduction& reduction);

}  // namespace erar
