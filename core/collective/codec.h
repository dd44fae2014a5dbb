// Codec: one reduction's elements as lanes that the ring can combine, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/data_type.h"
#include "core/numeric/block_float.h"
#include "core/numeric/float_elements.h"
#include "core/protocol/operation.h"
#include "core/result.h"

namespace erar {

struct LaneFormat {
  std::size_t element_bytes = 0;
  std::size_t lane_bytes = 0;  // of all the lanes of one element
  erar_combine combine{};
  // Blocks of numeric::kExponentBlock elements, counted from the buffer's first, share a scale that
  // follows from records which the ranks combine, like this, before they send.
  bool has_scales = false;
  erar_combine record_combine{};

  // Elements are lanes as they are: in place there is nothing to do before and after the ring.
  bool is_identity = false;

  // Lanes may lie where the elements lie.
  [[nodiscard]] bool fits_in_place() const { return lane_bytes == element_bytes; }
};

// Some elements of a buffer and their lanes. first is a multiple of numeric::kExponentBlock where
// there are scales.
struct CodecPart {
  std::size_t first = 0;  // element of the buffer
  std::size_t count = 0;
  const std::byte* input = nullptr;  // of element `first`
  std::byte* lanes = nullptr;        // the same memory as input, or apart from it
};

// A codec serves one allreduce call. Parts are announced in order, each is encoded after it was
// announced and decoded after its lanes were summed.
class Codec {
 public:
  explicit Codec(const LaneFormat& format) : format_(format) {}
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;
  virtual ~Codec() = default;

  [[nodiscard]] const LaneFormat& format() const { return format_; }

  // With scales only: bytes of the records of `count` elements. They end with one that says whether
  // all values are finite.
  [[nodiscard]] virtual std::size_t record_bytes(std::size_t count) const;
  // This rank's records (of finite values), and lanes by these unless they would overwrite the
  // input.
  virtual void announce(const CodecPart& part, std::byte* records);
  // Whether every rank's part was finite.
  [[nodiscard]] virtual bool all_finite(std::size_t count, const std::byte* agreed) const;
  // This rank's share as lanes. With scales: own records, as announce() left them, and the combined
  // ones of all ranks.
  virtual void encode(const CodecPart& part, const std::byte* own, const std::byte* agreed) = 0;
  // The reduced elements of summed lanes (part.lanes; part.input is not looked at). large: the
  // result will not be read from the cache. False when an element says that some rank's was not
  // finite.
  virtual bool decode(const CodecPart& part, const std::byte* agreed, std::byte* output,
                      bool large) = 0;

  // This rank's first element that is not finite, counted from the buffer's first.
  [[nodiscard]] const std::optional<numeric::Offender>& offender() const { return offender_; }
  // marks[i] = 1 where element part.first + i of this rank's input was not finite. Only for parts
  // of which announce() returned false.
  virtual void mark_not_finite(const CodecPart& part, std::span<std::uint8_t> marks) const;

 protected:
  void note_offender(DataType type, const CodecPart& part);

 private:
  LaneFormat format_;
  std::optional<numeric::Offender> offender_;
};

// Errors: a pre-scale factor that the type or the operation cannot have, compression likewise.
Result<void> check_reduction(const Reduction& reduction);

// Error feedback of a compressed call: what the last call on the same buffer could not send, and
// what this one cannot, one value for each element. before is empty where there was no such call.
struct Feedback {
  std::span<const float> before;
  std::vector<float> after;  // of the elements encoded so far
};

// For a reduction without such errors. feedback: null unless it is compressed.
std::unique_ptr<Codec> make_codec(const Reduction& reduction, unsigned ranks, Feedback* feedback);

}  // namespace erar
