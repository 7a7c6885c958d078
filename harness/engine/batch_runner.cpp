#include "harness/engine/batch_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <numeric>
#include <utility>

#include "harness/core/error.h"
#include "harness/kernels/log_softmax.h"

namespace fathom::engine {
namespace {

/// Sequences are packed into one pass until it has this many tokens: enough rows for the matrix products, few enough
/// that activations stay in the cache of the processor.
constexpr std::int64_t kPassTokens = 2048;
/// A shared prefix ends at a multiple of this, and leaves at least kFreshTokens to compute, so that the rest takes the
/// same path through the kernels as an unshared prompt: scores are then equal bit for bit.
constexpr std::int64_t kPrefixStep = 64;
constexpr std::int64_t kFreshTokens = 16;
/// Sequences that share nothing are computed together; sharing computes them one after the other, which has to save at
/// least this part.
constexpr double kWorthSharing = 0.1;

/// One request on its way.
struct Work {
  const lm::Request* request = nullptr;
  std::size_t index = 0;
  lm::Completion result;
  TokenIds tokens;  ///< prompt and what was generated
  std::unique_ptr<KvCache> cache;
  std::int64_t valid_tokens = 0;   ///< rows of the cache that belong to `tokens`
  std::uint64_t prompt_state = 0;  ///< rotation state at the prompt's length
  TokenId next_id = 0;             ///< greedy choice after `tokens`
  bool generating = false;
  std::int64_t weight = 0;         ///< tokens that went through the network, for the share of time
  std::int64_t decode_weight = 0;  ///< those of them that were computed for ids after the first

  std::int64_t prompt_tokens() const { return static_cast<std::int64_t>(request->prompt.size()); }
};

/// Tokens [begin, end) of a sequence to be computed into its cache; rows before `begin` are there.
struct Run {
  KvCache* cache = nullptr;
  const TokenId* ids = nullptr;  ///< the sequence from its first token on
  std::int64_t begin = 0;
  std::int64_t end = 0;
  /// Tokens up to here are computed under the tables of this length; each one after it is a pass of its own, under the
  /// tables of its own length (mode hf). Elsewhere the same as `end`.
  std::int64_t together = 0;
  std::uint64_t state = 0;
  std::vector<std::int64_t> wanted;  ///< positions, ascending, all in [begin, end)
  std::function<void(std::int64_t position, const float* logits)> consume;
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double share_of(double seconds, std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : seconds * static_cast<double>(part) / static_cast<double>(whole);
}

std::int64_t length_of(const TokenIds& ids) {
  return static_cast<std::int64_t>(ids.size());
}

std::int64_t common_prefix(const TokenIds& a, const TokenIds& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

/// Tokens that go through the network when a continuation is scored: its last id is only looked up.
std::int64_t scored_length(const lm::Continuation& continuation) {
  return continuation.keep + length_of(continuation.ids) - 1;
}

/// Its sums are made of blocks that begin where a pass begins: shared and unshared prefixes agree to rounding only.
bool has_linear_attention(const checkpoint::DecoderConfig& config) {
  return std::any_of(config.layers.begin(), config.layers.end(),
                     [](const checkpoint::LayerSpec& layer) { return layer.linear.has_value(); });
}

/// In mode hf (keeps_stale_keys()) every request is what a freshly loaded reference model would do with it: one
/// forward of the prompt, then one forward a token into the same cache, whose keys keep the rotation they were written
/// with. Lengths only grow within a request, so the reference's rule for its table (made anew when the length exceeds
/// the longest seen, plain again below L0) comes down to the table of the current length. Continuations are scored
/// token by token in the same way; nothing is shared between requests.
class BatchRunner {
 public:
  BatchRunner(Network& network, const BatchLimits& limits)
      : network_(network),
        limits_(limits),
        vocab_(network.config().vocab_size),
        stale_keys_(keeps_stale_keys(network.config())),
        share_prefixes_(limits.share_prefixes && !stale_keys_ && !has_linear_attention(network.config())) {}

  std::vector<lm::Completion> run(const std::vector<lm::Request>& batch) {
    const auto begin = Clock::now();
    std::vector<Work> works(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) reset(works[i], batch[i], i);
    for (const std::vector<Work*>& wave : plan_waves(works)) run_wave(wave);
    const double seconds = seconds_since(begin);
    std::int64_t weight = 0;
    std::int64_t decode_weight = 0;
    for (const Work& work : works) {
      weight += work.weight;
      decode_weight += work.decode_weight;
    }
    std::vector<lm::Completion> out;
    for (Work& work : works) {
      work.result.seconds = share_of(seconds, work.weight, weight);
      work.result.decode_seconds = share_of(decode_seconds_, work.decode_weight, decode_weight);
      out.push_back(std::move(work.result));
    }
    return out;
  }

 private:
  static void reset(Work& work, const lm::Request& request, std::size_t index) {
    work = Work();
    work.request = &request;
    work.index = index;
    work.tokens = request.prompt;
  }

  /// Empty if the request can be answered.
  std::string complaint(const lm::Request& request) const {
    if (request.prompt.empty()) return "model: the prompt is empty; a request needs at least one token";
    std::int64_t longest = length_of(request.prompt) + std::max<std::int64_t>(0, request.max_new_tokens - 1);
    TokenIds all = request.prompt;
    for (const lm::Continuation& continuation : request.continuations) {
      if (continuation.ids.empty()) return "model: a continuation to be scored is empty";
      if (continuation.keep < 1 || continuation.keep > length_of(request.prompt)) {
        return fmt::format("model: a continuation keeps {} tokens of a prompt of {}; allowed are 1..{}",
                           continuation.keep, request.prompt.size(), request.prompt.size());
      }
      longest = std::max(longest, scored_length(continuation));
      all.insert(all.end(), continuation.ids.begin(), continuation.ids.end());
    }
    for (const TokenId id : all) {
      if (id < 0 || id >= vocab_)
        return fmt::format("model: token id {} is outside the vocabulary of 0..{}", id, vocab_ - 1);
    }
    const auto limit = network_.max_positions();
    if (limit && longest > *limit) {
      return fmt::format("model: the request needs {} positions, the model's position table ends at {}", longest,
                         *limit);
    }
    return "";
  }

  std::size_t cache_bytes(std::int64_t n_tokens) const {
    const std::size_t element = kernels::element_size_bytes(network_.make_cache().type());
    std::size_t per_token = 0;
    for (const checkpoint::LayerSpec& spec : network_.config().layers) {
      per_token += 2 * element * static_cast<std::size_t>(spec.n_kv_heads * spec.d_head);
      per_token += sizeof(float) * static_cast<std::size_t>(checkpoint::remembered_width(network_.config(), spec));
    }
    return per_token * static_cast<std::size_t>(n_tokens);
  }

  static std::int64_t longest_tokens(const lm::Request& request) {
    std::int64_t longest = length_of(request.prompt) + std::max<std::int64_t>(0, request.max_new_tokens);
    for (const lm::Continuation& continuation : request.continuations)
      longest = std::max(longest, scored_length(continuation));
    return longest;
  }

  /// Requests whose caches are held together, in the order in which they are computed: by their tokens where prefixes
  /// are shared, so that neighbours have the longest prefix in common.
  std::vector<std::vector<Work*>> plan_waves(std::vector<Work>& works) {
    std::vector<Work*> order;
    for (Work& work : works) {
      work.result.error = complaint(*work.request);
      if (!work.result.error.empty()) continue;
      work.prompt_state = network_.rotation_state(work.prompt_tokens());
      order.push_back(&work);
    }
    if (share_prefixes_) {
      std::stable_sort(order.begin(), order.end(), [](const Work* a, const Work* b) {
        if (a->prompt_state != b->prompt_state) return a->prompt_state < b->prompt_state;
        return a->request->prompt < b->request->prompt;
      });
    }
    std::vector<std::vector<Work*>> waves;
    std::int64_t tokens = 0;
    std::size_t bytes = 0;
    for (Work* work : order) {
      const std::size_t own_bytes = cache_bytes(longest_tokens(*work->request));
      if (waves.empty() || tokens + work->prompt_tokens() > limits_.batch_tokens ||
          bytes + own_bytes > limits_.cache_bytes) {
        waves.emplace_back();
        tokens = 0;
        bytes = 0;
      }
      waves.back().push_back(work);
      tokens += work->prompt_tokens();
      bytes += own_bytes;
    }
    return waves;
  }

  /// A failure of one request must not take the others with it: they are then computed alone.
  void run_wave(const std::vector<Work*>& wave) {
    if (attempt(wave)) return;
    for (Work* work : wave) {
      if (wave.size() > 1) {
        const std::uint64_t state = work->prompt_state;
        reset(*work, *work->request, work->index);
        work->prompt_state = state;
        if (attempt({work})) continue;
      }
      lm::Completion failed;
      failed.error = failure_;
      failed.out_of_memory = out_of_memory_;
      work->result = std::move(failed);
    }
  }

  bool attempt(const std::vector<Work*>& wave) {
    try {
      answer(wave);
      donor_ = wave.back();
      return true;
    } catch (const std::bad_alloc&) {
      std::int64_t longest = 0;
      for (const Work* work : wave) longest = std::max(longest, longest_tokens(*work->request));
      failure_ = fmt::format("model: out of memory for a sequence of {} tokens", longest);
      out_of_memory_ = true;
    } catch (const ModelError& error) {
      failure_ = error.what();
      out_of_memory_ = false;
    }
    for (Work* work : wave) work->cache.reset();
    if (donor_ != nullptr) donor_->cache.reset();
    donor_ = nullptr;
    return false;
  }

  void answer(const std::vector<Work*>& wave) {
    prefill(wave);
    const auto decode_begin = Clock::now();
    while (decode_step(wave)) {
    }
    decode_seconds_ += seconds_since(decode_begin);
    score_continuations(wave);
    // Only the last cache is kept: the next wave may continue it.
    for (std::size_t i = 0; i + 1 < wave.size(); ++i) wave[i]->cache.reset();
  }

  // ---- prefill ----

  /// Tokens that `work` can take over from `donor`.
  std::int64_t reusable_tokens(const Work& work, const Work* donor) const {
    if (!share_prefixes_ || donor == nullptr) return 0;
    const bool has_cache = donor->cache != nullptr;
    const std::uint64_t donor_state = has_cache ? donor->cache->rotation_state() : donor->prompt_state;
    if (donor_state != work.prompt_state) return 0;
    std::int64_t n =
        std::min(common_prefix(work.request->prompt, donor->request->prompt), work.prompt_tokens() - kFreshTokens);
    n = std::min(n, has_cache ? donor->valid_tokens : donor->prompt_tokens());
    for (const lm::Continuation& continuation : work.request->continuations) {
      if (first_id_from_prompt(work, continuation)) n = std::min(n, continuation.keep - 1);
    }
    return std::max<std::int64_t>(0, n) / kPrefixStep * kPrefixStep;
  }

  /// True if the logits that a continuation starts from are made by the prefill: the angle tables are those of the
  /// scored text (mode hf: of the text in front of it, which is then the prompt).
  bool first_id_from_prompt(const Work& work, const lm::Continuation& continuation) const {
    if (stale_keys_) return continuation.keep == work.prompt_tokens();
    return network_.rotation_state(scored_length(continuation)) == work.prompt_state;
  }

  void prefill(const std::vector<Work*>& wave) {
    std::int64_t shared = 0;
    std::int64_t total = 0;
    const Work* donor = donor_;
    for (Work* work : wave) {
      shared += reusable_tokens(*work, donor);
      total += work->prompt_tokens();
      donor = work;
    }
    const bool one_by_one = static_cast<double>(shared) >= kWorthSharing * static_cast<double>(total);
    if (!one_by_one) release_donor(wave);
    std::vector<Run> together;
    for (Work* work : wave) {
      const std::int64_t reused = one_by_one ? adopt_prefix(*work, wave.size() == 1) : 0;
      if (!work->cache) work->cache = std::make_unique<KvCache>(network_.make_cache());
      work->cache->reserve(longest_tokens(*work->request));
      Run run = prompt_run(*work, reused);
      if (one_by_one) {
        std::vector<Run> alone;
        alone.push_back(std::move(run));
        run_all(alone);
        work->valid_tokens = work->prompt_tokens();
        release_donor(wave);
        donor_ = work;
      } else {
        together.push_back(std::move(run));
      }
    }
    run_all(together);
    for (Work* work : wave) work->valid_tokens = work->prompt_tokens();
  }

  /// The donor's cache is dropped unless the donor belongs to the wave in hand.
  void release_donor(const std::vector<Work*>& wave) {
    if (donor_ != nullptr && std::find(wave.begin(), wave.end(), donor_) == wave.end()) donor_->cache.reset();
    donor_ = nullptr;
  }

  /// Takes the common prefix over from the donor. \return its tokens.
  std::int64_t adopt_prefix(Work& work, bool alone) {
    const std::int64_t n = reusable_tokens(work, donor_);
    if (donor_ == nullptr || donor_->cache == nullptr) return 0;
    if (alone) {  // its cache itself: two caches of a long context might not fit
      work.cache = std::move(donor_->cache);
      work.cache->truncate(n);
    } else if (n > 0) {
      work.cache = std::make_unique<KvCache>(network_.make_cache());
      work.cache->reserve(longest_tokens(*work.request));
      work.cache->copy_prefix(*donor_->cache, n);
    }
    return n;
  }

  Run prompt_run(Work& work, std::int64_t begin) {
    Run run;
    run.cache = work.cache.get();
    run.ids = work.tokens.data();
    run.begin = begin;
    run.end = run.together = work.prompt_tokens();
    run.state = work.prompt_state;
    std::vector<std::int64_t>& wanted = run.wanted;
    if (work.request->max_new_tokens > 0) wanted.push_back(run.end - 1);
    work.result.continuations.resize(work.request->continuations.size());
    for (const lm::Continuation& continuation : work.request->continuations) {
      if (first_id_from_prompt(work, continuation)) wanted.push_back(continuation.keep - 1);
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    run.consume = [this, &work](std::int64_t position, const float* logits) {
      take_prompt_logits(work, position, logits);
    };
    work.result.computed_tokens = run.end - run.begin;
    work.weight = run.end - run.begin;
    return run;
  }

  void take_prompt_logits(Work& work, std::int64_t position, const float* logits) {
    if (work.request->max_new_tokens > 0 && position == work.prompt_tokens() - 1) {
      work.next_id = static_cast<TokenId>(kernels::argmax(logits, vocab_));
      work.generating = true;
    }
    for (std::size_t i = 0; i < work.request->continuations.size(); ++i) {
      const lm::Continuation& continuation = work.request->continuations[i];
      if (continuation.keep - 1 == position && first_id_from_prompt(work, continuation)) {
        add_score(work.result.continuations[i], continuation.ids.front(), logits);
      }
    }
  }

  void add_score(lm::ContinuationScore& score, TokenId id, const float* logits) const {
    score.logprobs.push_back(static_cast<double>(logits[id]) - kernels::log_sum_exp(logits, vocab_));
    score.ranks.push_back(kernels::rank_of(logits, vocab_, id));
  }

  // ---- decoding ----

  /// Appends one token to every sequence that is still generating. \return false if there is none.
  bool decode_step(const std::vector<Work*>& wave) {
    std::vector<Run> runs;
    for (Work* work : wave) {
      if (!work->generating) continue;
      const lm::Request& request = *work->request;
      if (std::find(request.stop_ids.begin(), request.stop_ids.end(), work->next_id) != request.stop_ids.end()) {
        work->generating = false;
        work->result.finish = lm::FinishReason::kStop;
        continue;
      }
      work->tokens.push_back(work->next_id);
      work->result.ids.push_back(work->next_id);
      if (length_of(work->result.ids) >= request.max_new_tokens) {
        work->generating = false;
        work->result.finish = lm::FinishReason::kBudget;
        continue;
      }
      const std::int64_t length = length_of(work->tokens);
      Run run;
      run.cache = work->cache.get();
      run.ids = work->tokens.data();
      run.end = run.together = length;
      run.state = network_.rotation_state(length);
      // Another angle table: the whole sequence is computed again, as if it had been the prompt.
      run.begin = stale_keys_ || run.state == work->cache->rotation_state() ? length - 1 : 0;
      run.wanted = {length - 1};
      run.consume = [this, work](std::int64_t, const float* logits) {
        work->next_id = static_cast<TokenId>(kernels::argmax(logits, vocab_));
      };
      work->weight += run.end - run.begin;
      work->decode_weight += run.end - run.begin;
      runs.push_back(std::move(run));
    }
    run_all(runs);
    for (Work* work : wave) {
      if (work->generating) work->valid_tokens = length_of(work->tokens);
    }
    return !runs.empty();
  }

  // ---- continuations ----

  /// The k-th continuations of all requests run together. Within a request the longest kept prefix comes first, because
  /// scoring overwrites what follows it.
  void score_continuations(const std::vector<Work*>& wave) {
    std::vector<std::vector<std::size_t>> orders;
    std::size_t rounds = 0;
    for (const Work* work : wave) {
      const auto& continuations = work->request->continuations;
      std::vector<std::size_t> order(continuations.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return continuations[a].keep > continuations[b].keep; });
      rounds = std::max(rounds, order.size());
      orders.push_back(std::move(order));
    }
    for (std::size_t round = 0; round < rounds; ++round) {
      std::vector<Run> runs;
      std::vector<TokenIds> texts(wave.size());
      for (std::size_t i = 0; i < wave.size(); ++i) {
        if (round < orders[i].size()) add_continuation_run(*wave[i], orders[i][round], texts[i], runs);
      }
      run_all(runs);
    }
  }

  void add_continuation_run(Work& work, std::size_t index, TokenIds& text, std::vector<Run>& runs) {
    const lm::Continuation& continuation = work.request->continuations[index];
    const bool first_done = first_id_from_prompt(work, continuation);
    if (first_done && continuation.ids.size() == 1) return;
    text.assign(work.request->prompt.begin(), work.request->prompt.begin() + continuation.keep);
    text.insert(text.end(), continuation.ids.begin(), continuation.ids.end() - 1);
    Run run;
    run.cache = work.cache.get();
    run.ids = text.data();
    run.end = length_of(text);
    run.together = stale_keys_ ? continuation.keep : run.end;
    run.state = network_.rotation_state(run.end);
    const bool goes_on = first_done && (stale_keys_ || work.cache->rotation_state() == run.state) &&
                         work.valid_tokens >= continuation.keep;
    run.begin = goes_on ? continuation.keep : 0;
    for (std::int64_t position = first_done ? continuation.keep : continuation.keep - 1; position < run.end;
         ++position) {
      run.wanted.push_back(position);
    }
    run.consume = [this, &work, index](std::int64_t position, const float* logits) {
      const lm::Continuation& scored = work.request->continuations[index];
      add_score(work.result.continuations[index], scored.ids[static_cast<std::size_t>(position - scored.keep + 1)],
                logits);
    };
    work.valid_tokens = std::min(work.valid_tokens, continuation.keep);
    if (run.begin == 0) work.valid_tokens = continuation.keep;
    work.weight += run.end - run.begin;
    runs.push_back(std::move(run));
  }

  // ---- passes ----

  /// Computes all runs, chunk by chunk, several sequences to a pass.
  void run_all(std::vector<Run>& runs) {
    for (Run& run : runs) {
      run.cache->truncate(run.begin);
      run.cache->reserve(run.end);
      run.cache->set_rotation_state(run.state);
    }
    std::size_t first = 0;
    while (first < runs.size()) {
      stop_if_asked();
      std::vector<ForwardPiece> pieces;
      std::vector<Run*> owners;
      std::int64_t tokens = 0;
      for (std::size_t i = first; i < runs.size() && tokens < kPassTokens; ++i) {
        if (runs[i].begin == runs[i].end) continue;
        pieces.push_back(next_piece(runs[i]));
        owners.push_back(&runs[i]);
        tokens += pieces.back().n_tokens;
      }
      network_.forward(pieces, [&](std::size_t piece, std::int64_t offset, const float* logits) {
        owners[piece]->consume(pieces[piece].first_position + offset, logits);
      });
      for (std::size_t i = 0; i < pieces.size(); ++i) owners[i]->begin += pieces[i].n_tokens;
      while (first < runs.size() && runs[first].begin == runs[first].end) ++first;
    }
  }

  static ForwardPiece next_piece(const Run& run) {
    ForwardPiece piece;
    const bool alone = run.begin >= run.together;
    const std::int64_t end = alone ? run.begin + 1 : chunk_end(run.begin, run.together);
    piece.ids = run.ids + run.begin;
    piece.n_tokens = end - run.begin;
    piece.first_position = run.begin;
    piece.total_len = alone ? end : run.together;
    piece.cache = run.cache;
    for (const std::int64_t position : run.wanted) {
      if (position >= run.begin && position < end) piece.wanted.push_back(position - run.begin);
    }
    return piece;
  }

  void stop_if_asked() const {
    if (limits_.stop != nullptr && limits_.stop->stop_requested())
      throw Interrupted("stopped while the model was computing");
  }

  Network& network_;
  const BatchLimits& limits_;
  const std::int64_t vocab_;
  const bool stale_keys_;
  const bool share_prefixes_;
  Work* donor_ = nullptr;  // whose cache may be continued; a request of this batch
  double decode_seconds_ = 0;
  std::string failure_;
  bool out_of_memory_ = false;
};

}  // namespace

std::vector<lm::Completion> run_batch(Network& network, const std::vector<lm::Request>& batch,
                                      const BatchLimits& limits) {
  return BatchRunner(network, limits).run(batch);
}

}  // namespace fathom::engine
