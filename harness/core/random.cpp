#include "harness/core/random.h"

#include <cmath>
#include <unordered_map>

#include "harness/core/error.h"

namespace fathom {
namespace {

// The full 128-bit product, needed by Lemire's bounded draw.
__extension__ using random_u128 = unsigned __int128;

}  // namespace

RngKey RngKey::child(std::string_view part) const {
  std::string text = text_;
  text += '|';
  text += part;
  return RngKey(text);
}

PhiloxBlock philox4x32(const PhiloxBlock& counter, std::uint64_t key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53U;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57U;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
  std::uint32_t key0 = static_cast<std::uint32_t>(key);
  std::uint32_t key1 = static_cast<std::uint32_t>(key >> 32U);
  PhiloxBlock x = counter;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * x.word[0];
    const std::uint64_t product1 = kMultiplier1 * x.word[2];
    x = {{static_cast<std::uint32_t>(product1 >> 32U) ^ x.word[1] ^ key0, static_cast<std::uint32_t>(product1),
          static_cast<std::uint32_t>(product0 >> 32U) ^ x.word[3] ^ key1, static_cast<std::uint32_t>(product0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x;
}

std::uint64_t RngStream::next_u64() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  // Half of the 128-bit key is Philox's key, the other half fills the upper counter words.
  const PhiloxBlock counter{{static_cast<std::uint32_t>(counter_), static_cast<std::uint32_t>(counter_ >> 32U),
                             static_cast<std::uint32_t>(key_.high), static_cast<std::uint32_t>(key_.high >> 32U)}};
  ++counter_;
  const PhiloxBlock out = philox4x32(counter, key_.low);
  spare_ = (static_cast<std::uint64_t>(out.word[3]) << 32U) | out.word[2];
  has_spare_ = true;
  return (static_cast<std::uint64_t>(out.word[1]) << 32U) | out.word[0];
}

std::uint64_t RngStream::uniform_index(std::uint64_t bound) {
  FATHOM_CHECK(bound >= 1, "uniform_index needs a bound of at least 1");
  random_u128 product = static_cast<random_u128>(next_u64()) * bound;
  auto low = static_cast<std::uint64_t>(product);
  if (low < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (low < threshold) {
      product = static_cast<random_u128>(next_u64()) * bound;
      low = static_cast<std::uint64_t>(product);
    }
  }
  return static_cast<std::uint64_t>(product >> 64U);
}

std::int64_t RngStream::uniform_int(std::int64_t low, std::int64_t high) {
  FATHOM_CHECK(low <= high, "uniform_int needs low <= high");
  const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t offset = span == UINT64_MAX ? next_u64() : uniform_index(span + 1);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

double RngStream::uniform_double() {
  return static_cast<double>(next_u64() >> 11U) * 0x1.0p-53;
}

double RngStream::normal() {
  const double u = 1.0 - uniform_double();  // (0, 1]: the logarithm stays finite
  const double angle = 2.0 * 3.14159265358979323846 * uniform_double();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(angle);
}

std::vector<std::uint64_t> RngStream::sample_without_replacement(std::uint64_t n, std::uint64_t count) {
  FATHOM_CHECK(count <= n, "more draws than items");
  std::unordered_map<std::uint64_t, std::uint64_t> moved;  // position -> item, where it is not the identity
  const auto item_at = [&moved](std::uint64_t position) {
    const auto found = moved.find(position);
    return found == moved.end() ? position : found->second;
  };
  std::vector<std::uint64_t> drawn;
  drawn.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t last = n - 1 - i;
    const std::uint64_t pick = uniform_index(last + 1);
    drawn.push_back(item_at(pick));
    moved[pick] = item_at(last);
  }
  return drawn;
}

}  // namespace fathom
