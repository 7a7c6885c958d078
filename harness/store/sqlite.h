#pragma once
// SQLite's C interface as three small classes. Every failure is a StoreError that says which file, what SQLite said and
// what to do.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace fathom::store {

enum class OpenMode {
  kReadWrite,  ///< created if it is missing
  kReadOnly,   ///< never writes, not even a lock file where SQLite can do without
  kImmutable   ///< read-only on a medium that nobody can change: no locks, no write-ahead log
};

struct OpenRequest {
  std::string path;
  OpenMode mode = OpenMode::kReadWrite;
  int busy_timeout_ms = 10000;  ///< how long to wait for another process before "database is locked"
};

class Statement;

/// One connection. Not shared between threads.
class Database {
 public:
  /// \throws StoreError if the file cannot be opened or is no database.
  explicit Database(const OpenRequest& request);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Runs statements that return nothing of interest. \throws StoreError
  void execute(const std::string& sql);
  /// First column of the first row. \throws StoreError, also if there is no row.
  std::int64_t query_integer(const std::string& sql);
  /// \throws StoreError
  std::string query_text(const std::string& sql);

  /// The statement of this text, prepared once for the connection and ready for bindings. Run it with run,
  /// run_returning or first_integer, which reset it: a statement left half-way would keep its snapshot of the database.
  /// \throws StoreError
  Statement& prepared(std::string_view sql);

  const std::string& path() const { return path_; }
  sqlite3* handle() const { return handle_; }
  /// Rows changed by the last statement.
  std::int64_t changes() const;
  /// StoreError for an SQLite result code: file, message, fix.
  [[noreturn]] void fail(int result_code, std::string_view doing) const;

 private:
  std::string path_;
  sqlite3* handle_ = nullptr;
  std::map<std::string, std::unique_ptr<Statement>, std::less<>> prepared_;
};

/// Takes away the empty write-ahead log that a read-only connection leaves beside a database when it is the last to
/// close. Does nothing where somebody else uses the file or it may not be written.
void remove_idle_log(const std::string& path) noexcept;

/// A prepared statement: bind, step, read, reset. Parameters and columns count from 0.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);
  ~Statement();
  Statement(Statement&& other) noexcept : database_(other.database_), statement_(other.statement_) {
    other.statement_ = nullptr;
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  Statement& operator=(Statement&&) = delete;

  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, double value);
  Statement& bind(int parameter, std::string_view text);
  Statement& bind_blob(int parameter, std::string_view bytes);
  Statement& bind_null(int parameter);
  template <typename T>
  Statement& bind(int parameter, const std::optional<T>& value) {
    return value ? bind(parameter, *value) : bind_null(parameter);
  }

  /// True while there is a row. \throws StoreError
  bool step();
  /// Runs to the end and makes the statement ready for the next bindings. \throws StoreError
  void run();
  /// Runs a statement that returns exactly one integer (RETURNING id), then resets it. \throws StoreError
  std::int64_t run_returning();
  /// The integer in the first column of the first row, if there is a row; then resets. \throws StoreError
  std::optional<std::int64_t> first_integer();
  void reset();

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  /// Valid until the next step or reset.
  std::string_view text(int column) const;
  std::optional<std::int64_t> optional_integer(int column) const;
  std::optional<double> optional_real(int column) const;

 private:
  Database* database_;
  sqlite3_stmt* statement_ = nullptr;
};

/// BEGIN IMMEDIATE; rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  /// \throws StoreError
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace fathom::store
