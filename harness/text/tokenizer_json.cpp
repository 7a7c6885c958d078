#include "harness/text/tokenizer_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/text/byte_spelling.h"
#include "harness/text/pipeline_tokenizer.h"
#include "harness/text/tokenizer_steps.h"

namespace fathom::text {
namespace {

using Json = nlohmann::json;

constexpr int kTokenizerMaxDepth = 32;
/// Ids may have holes, but not so many that a file of some bytes asks for gigabytes.
constexpr std::int64_t kTokenizerMostHoles = 65536;

Json parse_bounded(std::string_view text, const std::string& where) {
  const auto check_depth = [&where](int depth, Json::parse_event_t, Json&) {
    if (depth > kTokenizerMaxDepth) {
      throw DataError(fmt::format("{}: its JSON is nested deeper than {} levels", where, kTokenizerMaxDepth));
    }
    return true;
  };
  return Json::parse(text.begin(), text.end(), check_depth);
}

class TokenizerJsonReader {
 public:
  TokenizerJsonReader(const Json& root, const SpecialTokenPolicy& policy, const std::string& where)
      : root_(root), model_(root.at("model")), policy_(policy), where_(where) {}

  std::unique_ptr<Tokenizer> read() {
    if (!model_.is_object()) fail("model is no object");
    steps_ = read_tokenizer_steps(part("normalizer"), part("pre_tokenizer"), where_);
    read_ids();
    read_added();
    const std::string type = model_.contains("type")     ? model_.at("type").get<std::string>()
                             : model_.contains("merges") ? "BPE"
                                                         : "Unigram";
    std::unique_ptr<TokenModel> model;
    if (type == "BPE") {
      model = read_bpe();
    } else if (type == "Unigram") {
      model = read_unigram();
    } else {
      fail(fmt::format("model type '{}' is not supported; supported: BPE, Unigram", type));
    }
    PipelineParts parts{std::move(added_),
                        Normalizer(std::move(steps_.normalizer)),
                        Normalizer(std::move(steps_.rewriting)),
                        Pretokenizer(steps_.splits, where_),
                        std::move(model),
                        std::move(texts_),
                        steps_.blank_prefix,
                        std::nullopt,
                        std::nullopt,
                        false,
                        false,
                        "tokenizer.json " + hash_hex(root_.dump(-1, ' ', false, Json::error_handler_t::replace))};
    set_frame(parts);
    return make_pipeline_tokenizer(std::move(parts), where_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const { throw DataError(fmt::format("{}: {}", where_, problem)); }

  std::string part(const char* name) const {
    return root_.contains(name) ? root_.at(name).dump(-1, ' ', false, Json::error_handler_t::replace) : "null";
  }

  /// Options that would change the ids and are not honoured.
  void refuse_unless(const char* key, bool fine) const {
    if (!fine) fail(fmt::format("model.{} = {} is not supported", key, model_.at(key).dump()));
  }

  bool is_unset(const char* key) const {
    return !model_.contains(key) || model_.at(key).is_null() ||
           (model_.at(key).is_string() && model_.at(key).get_ref<const std::string&>().empty()) ||
           model_.at(key) == 0.0;
  }

  std::size_t n_listed_added() const {
    return root_.value("added_tokens", Json::array()).size() + policy_.added.size();
  }

  TokenId checked_id(const Json& value, const std::string& what) const {
    const auto most =
        static_cast<std::int64_t>(2 * n_listed_added() + 2 * model_.at("vocab").size()) + kTokenizerMostHoles;
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > most) {
      fail(fmt::format("{} has id {}; allowed are 0 to {}", what, value.dump(), most));
    }
    return static_cast<TokenId>(value.get<std::int64_t>());
  }

  /// Ids of the model's own pieces.
  void read_ids() {
    const Json& vocabulary = model_.at("vocab");
    if (vocabulary.is_object()) {
      for (const auto& [piece, value] : vocabulary.items()) {
        ids_.emplace(piece, checked_id(value, fmt::format("token '{}'", piece)));
      }
      return;
    }
    TokenId id = 0;
    for (const Json& entry : vocabulary) ids_.insert_or_assign(entry.at(0).get<std::string>(), id++);
  }

  void read_added() {
    if (root_.contains("added_tokens") && !root_.at("added_tokens").is_null()) {
      for (const Json& json : root_.at("added_tokens")) add_token(listed_token(json));
    }
    for (const AddedToken& token : policy_.added) {
      checked_id(token.id, fmt::format("added token '{}'", token.content));
      add_token(token);
    }
  }

  AddedToken listed_token(const Json& json) const {
    AddedToken token;
    token.content = json.at("content").get<std::string>();
    token.id = checked_id(json.at("id"), fmt::format("added token '{}'", token.content));
    token.special = json.value("special", false);
    token.strips_left = json.value("lstrip", false);
    token.strips_right = json.value("rstrip", false);
    token.single_word = json.value("single_word", false);
    token.normalized = json.value("normalized", !token.special);
    return token;
  }

  /// The model's own id of a text counts, then the one it has already.
  void add_token(AddedToken token) {
    const auto own = ids_.find(token.content);
    if (own != ids_.end()) token.id = own->second;
    const auto [place, is_new] = added_places_.emplace(token.content, added_.size());
    if (!is_new) {
      AddedToken& known = added_[place->second];
      token.id = known.id;
      known = std::move(token);
      return;
    }
    added_.push_back(std::move(token));
  }

  /// Makes room for an id in both lists.
  void grow(std::vector<std::string>& pieces, TokenId id) {
    const std::size_t n = static_cast<std::size_t>(id) + 1;
    if (pieces.size() < n) pieces.resize(n);
    if (texts_.size() < n) texts_.resize(n);
  }

  /// Spelling in normalised text; sets the text that the token stands for.
  std::string spelling_of(const std::string& piece, TokenId id) {
    std::string& text = texts_[static_cast<std::size_t>(id)];
    if (steps_.byte_level) {
      // Spelled in other characters, a token is its own text; no word leads to it.
      const auto bytes = bytes_of_spelling(piece);
      text = bytes.value_or(piece);
      return bytes.value_or("");
    }
    text = steps_.blank_mark.empty() ? piece : replace_all(piece, steps_.blank_mark, " ");
    return piece;
  }

  void add_texts_of_added(std::vector<std::string>& pieces) {
    for (const AddedToken& token : added_) {
      grow(pieces, token.id);
      texts_[static_cast<std::size_t>(token.id)] = token.content;
    }
  }

  void set_byte_tokens(const std::vector<std::string>& pieces, FallbackTokens& fallback) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto byte = byte_of_hex_token(pieces[i]);
      if (!byte) continue;
      fallback.bytes[static_cast<unsigned char>(byte->front())] = static_cast<TokenId>(i);
      texts_[i] = *byte;
    }
  }

  std::unique_ptr<TokenModel> read_bpe() {
    refuse_unless("dropout", is_unset("dropout"));
    refuse_unless("continuing_subword_prefix", is_unset("continuing_subword_prefix"));
    refuse_unless("end_of_word_suffix", is_unset("end_of_word_suffix"));
    MergeVocabulary vocabulary;
    for (const auto& [piece, id] : ids_) {
      grow(vocabulary.pieces, id);
      vocabulary.pieces[static_cast<std::size_t>(id)] = spelling_of(piece, id);
    }
    add_texts_of_added(vocabulary.pieces);
    read_merges(vocabulary.merges);
    if (model_.value("byte_fallback", false)) set_byte_tokens(vocabulary.pieces, vocabulary.fallback);
    if (!is_unset("unk_token")) {
      const auto unknown = ids_.find(model_.at("unk_token").get<std::string>());
      if (unknown != ids_.end()) vocabulary.fallback.unknown = unknown->second;
    }
    vocabulary.fallback.fuses_unknown = model_.value("fuse_unk", false);
    vocabulary.symbols_are_bytes = steps_.byte_level;
    vocabulary.takes_whole_words = model_.value("ignore_merges", false);
    return make_merge_model(std::move(vocabulary));
  }

  void read_merges(std::vector<TokenMerge>& merges) const {
    for (const Json& json : model_.at("merges")) {
      std::string left;
      std::string right;
      if (json.is_string()) {
        const auto text = json.get<std::string>();
        if (starts_with(text, "#version")) continue;  // the first line of a merges.txt
        const auto blank = text.find(' ');
        if (blank == std::string::npos) fail(fmt::format("merge '{}' is not two pieces with a blank between", text));
        left = text.substr(0, blank);
        right = text.substr(blank + 1);
      } else if (json.is_array() && json.size() == 2) {
        left = json.at(0).get<std::string>();
        right = json.at(1).get<std::string>();
      } else {
        fail(fmt::format("merge {} is neither a text nor a pair", merges.size()));
      }
      const auto id_of = [&](const std::string& piece) {
        const auto found = ids_.find(piece);
        if (found == ids_.end()) {
          fail(fmt::format("merge {} '{} {}' names '{}', which is no token", merges.size(), left, right, piece));
        }
        return found->second;
      };
      merges.push_back({id_of(left), id_of(right), id_of(left + right)});
    }
  }

  std::unique_ptr<TokenModel> read_unigram() {
    if (steps_.byte_level) fail("a Unigram model behind ByteLevel is not supported");
    ScoredVocabulary vocabulary;
    vocabulary.sums = ScoreSums::kDouble;
    for (const Json& entry : model_.at("vocab")) {
      const auto id = static_cast<TokenId>(vocabulary.pieces.size());
      const auto piece = entry.at(0).get<std::string>();
      const auto score = entry.at(1).get<double>();
      if (!std::isfinite(score)) fail(fmt::format("token '{}' has a score that is no number", piece));
      grow(vocabulary.pieces, id);
      vocabulary.pieces.back() = spelling_of(piece, id);
      vocabulary.scores.push_back(score);
    }
    // Unlike SentencePiece's, these tokens are found in the text by their spelling too.
    if (model_.value("byte_fallback", false)) set_byte_tokens(vocabulary.pieces, vocabulary.fallback);
    if (!is_unset("unk_id") || (model_.contains("unk_id") && model_.at("unk_id") == 0)) {
      const TokenId unknown = checked_id(model_.at("unk_id"), "the unknown token");
      if (static_cast<std::size_t>(unknown) >= vocabulary.pieces.size()) fail("model.unk_id is outside the vocabulary");
      vocabulary.fallback.unknown = unknown;
    }
    add_texts_of_added(vocabulary.pieces);
    vocabulary.scores.resize(vocabulary.pieces.size());
    return make_unigram_model(std::move(vocabulary));
  }

  std::optional<TokenId> id_of_added(const std::vector<AddedToken>& added, const std::string& content) const {
    for (const AddedToken& token : added) {
      if (token.content == content) return token.id;
    }
    return std::nullopt;
  }

  std::optional<TokenId> named(PipelineParts& parts, const std::optional<std::string>& text, std::optional<TokenId> id,
                               const char* what) const {
    if (!text) return id;
    const auto found = id_of_added(parts.added, *text);
    if (found) return found;
    const auto own = ids_.find(*text);
    if (own == ids_.end()) {
      fail(fmt::format("the {} token '{}' is neither among the added tokens nor in the vocabulary", what, *text));
    }
    // Named, a piece of the model's own is looked for in the text like the others.
    parts.added.push_back({own->second, *text, true, false, false, false, false});
    return own->second;
  }

  void set_frame(PipelineParts& parts) const {
    parts.bos = named(parts, policy_.bos, policy_.bos_id, "BOS");
    parts.eos = named(parts, policy_.eos, policy_.eos_id, "EOS");
    TokenizerFrame frame = read_tokenizer_frame(part("post_processor"), where_);
    if (frame.front) parts.bos = named(parts, frame.front, std::nullopt, "first");
    if (frame.back && !parts.eos) parts.eos = named(parts, frame.back, std::nullopt, "last");
    const bool by_flags = !frame.is_said || policy_.flags_win;
    parts.add_bos = by_flags && policy_.add_bos ? *policy_.add_bos : frame.front.has_value();
    parts.add_eos = by_flags && policy_.add_eos ? *policy_.add_eos : frame.back.has_value();
  }

  const Json& root_;
  const Json& model_;
  const SpecialTokenPolicy& policy_;
  const std::string& where_;
  TokenizerSteps steps_;
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<AddedToken> added_;
  std::unordered_map<std::string, std::size_t> added_places_;  // by content; files list thousands
  std::vector<std::string> texts_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view json, const SpecialTokenPolicy& policy,
                                               const std::string& where) {
  try {
    const Json root = parse_bounded(json, where);
    if (!root.is_object()) throw DataError(fmt::format("{}: it is no JSON object", where));
    return TokenizerJsonReader(root, policy, where).read();
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: not a tokenizer: {}", where, error.what()));
  }
}

}  // namespace fathom::text
