#include "harness/analysis/comparison_cells.h"

#include <algorithm>

#include "harness/analysis/paired_tests.h"

namespace fathom::analysis {
namespace {

using CellRows = std::pair<const PairedRow*, const PairedRow*>;  // [begin, end)

bool is_zero_one(double score) {
  return score == 0 || score == 1;
}

double cell_p(CellRows rows, const RngKey& key) {
  bool zero_one = true;
  std::int64_t n_only_baseline = 0;
  std::int64_t n_only_candidate = 0;
  std::vector<double> differences;
  for (const PairedRow* row = rows.first; row != rows.second; ++row) {
    zero_one = zero_one && is_zero_one(row->baseline) && is_zero_one(row->candidate);
    if (row->baseline > row->candidate) ++n_only_baseline;
    if (row->candidate > row->baseline) ++n_only_candidate;
    differences.push_back(row->candidate - row->baseline);
  }
  return zero_one ? mcnemar_exact(n_only_baseline, n_only_candidate) : sign_flip_p(differences, key);
}

CellChange cell_change(CellRows rows, std::size_t pair, const std::string& task, const RngKey& key) {
  CellChange cell;
  cell.pair = pair;
  cell.task = task;
  cell.length_tokens = rows.first->length_tokens;
  cell.depth_bp = rows.first->depth_bp;
  cell.n_samples = rows.second - rows.first;
  for (const PairedRow* row = rows.first; row != rows.second; ++row) {
    cell.baseline += row->baseline / static_cast<double>(cell.n_samples);
    cell.candidate += row->candidate / static_cast<double>(cell.n_samples);
  }
  cell.p = cell_p(rows, key.child(task).child(cell.length_tokens).child(cell.depth_bp.value_or(-1)));
  return cell;
}

std::vector<MissExample> examples_of(CellRows rows, std::size_t n_wanted) {
  std::vector<const PairedRow*> worse;
  for (const PairedRow* row = rows.first; row != rows.second; ++row) {
    if (row->candidate < row->baseline) worse.push_back(row);
  }
  std::stable_sort(worse.begin(), worse.end(), [](const PairedRow* a, const PairedRow* b) {
    return a->candidate - a->baseline < b->candidate - b->baseline;
  });
  worse.resize(std::min(worse.size(), n_wanted));
  std::vector<MissExample> out;
  for (const PairedRow* row : worse) {
    MissExample example;
    example.index = row->index;
    example.baseline_result_id = row->baseline_result_id;
    example.candidate_result_id = row->candidate_result_id;
    example.baseline_score = row->baseline;
    example.candidate_score = row->candidate;
    out.push_back(std::move(example));
  }
  return out;
}

bool same_cell(const PairedRow& a, const PairedRow& b) {
  return a.task == b.task && a.length_tokens == b.length_tokens && a.depth_bp == b.depth_bp;
}

}  // namespace

void add_worst_cells(const RunPairing& runs, const GateSettings& settings, Comparison& out) {
  std::vector<CellChange> cells;
  std::vector<CellRows> rows_of_cell;
  for (std::size_t v = 0; v < runs.variants.size(); ++v) {
    const VariantPairing& variant = runs.variants[v];
    const RngKey key = RngKey("fathom/1|compare|cells").child(variant.pair.name);
    std::size_t begin = 0;
    while (begin < variant.rows.size()) {
      std::size_t end = begin;
      while (end < variant.rows.size() && same_cell(variant.rows[end], variant.rows[begin])) ++end;
      rows_of_cell.emplace_back(variant.rows.data() + begin, variant.rows.data() + end);
      cells.push_back(cell_change(rows_of_cell.back(), v, runs.tasks[variant.rows[begin].task].label, key));
      begin = end;
    }
  }
  std::vector<double> p_values;
  p_values.reserve(cells.size());
  for (const CellChange& cell : cells) p_values.push_back(cell.p);
  const std::vector<double> adjusted = holm_adjust(p_values);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i].p_adjusted = adjusted[i];
    if (cells[i].difference() < 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::make_pair(cells[a].difference(), cells[a].p) < std::make_pair(cells[b].difference(), cells[b].p);
  });
  order.resize(std::min(order.size(), settings.n_worst_cells));
  for (const std::size_t i : order) {
    cells[i].examples = examples_of(rows_of_cell[i], settings.n_examples);
    out.worst_cells.push_back(std::move(cells[i]));
  }
  out.n_cells = cells.size();
}

}  // namespace fathom::analysis
