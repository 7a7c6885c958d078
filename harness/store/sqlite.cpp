#include "harness/store/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "harness/core/error.h"

namespace fathom::store {
namespace {

/// What the user can do about an SQLite result code.
std::string_view sqlite_fix(int result_code) {
  switch (result_code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process is writing to it; wait for it to finish, or write to another file with --db";
    case SQLITE_READONLY:
      return "the file or its folder cannot be written; change the permissions, or choose another file with --db";
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return "the file cannot be accessed; change the permissions, or choose another file with --db";
    case SQLITE_CANTOPEN:
      return "check that the folder exists and may be accessed, or choose another file with --db";
    case SQLITE_FULL:
      return "the disk or quota is full; free some space and run the same command again, finished batches are kept";
    case SQLITE_IOERR:
      return "the disk reported an error; check its space, quota and health, then run the same command again";
    case SQLITE_NOTADB:
      return "it is no SQLite database; choose another file with --db";
    case SQLITE_CORRUPT:
      return "the file is damaged; restore a copy, or start a new one with --db";
    default:
      return "";
  }
}

/// `file:` URI of a path, so that `immutable=1` can be said.
std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

}  // namespace

Database::Database(const OpenRequest& request) : path_(request.path) {
  int flags = SQLITE_OPEN_NOMUTEX;
  std::string name = request.path;
  switch (request.mode) {
    case OpenMode::kReadWrite:
      flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      break;
    case OpenMode::kReadOnly:
      flags |= SQLITE_OPEN_READONLY;
      break;
    case OpenMode::kImmutable:
      flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
      name = immutable_uri(request.path);
      break;
  }
  const int result = sqlite3_open_v2(name.c_str(), &handle_, flags, nullptr);
  if (result != SQLITE_OK) {
    const std::string message = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(result);
    sqlite3_close(handle_);
    handle_ = nullptr;
    throw StoreError(fmt::format("store: cannot open {}: {}; {}", path_, message, sqlite_fix(result)));
  }
  // A file that may not be written is opened read-only without a word.
  if (request.mode == OpenMode::kReadWrite && sqlite3_db_readonly(handle_, "main") == 1) {
    sqlite3_close(handle_);
    handle_ = nullptr;
    throw StoreError(fmt::format("store: cannot write to {}: {}; {}", path_, sqlite3_errstr(SQLITE_READONLY),
                                 sqlite_fix(SQLITE_READONLY)));
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, request.busy_timeout_ms);
}

Database::~Database() {
  prepared_.clear();
  sqlite3_close(handle_);
}

Statement& Database::prepared(std::string_view sql) {
  auto found = prepared_.find(sql);
  if (found == prepared_.end()) {
    found = prepared_.emplace(std::string(sql), std::make_unique<Statement>(*this, sql)).first;
  }
  found->second->reset();
  return *found->second;
}

void Database::execute(const std::string& sql) {
  const int result = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) fail(result, "cannot use");
}

std::int64_t Database::query_integer(const std::string& sql) {
  Statement statement(*this, sql);
  FATHOM_CHECK(statement.step(), "query_integer needs a row: " + sql);
  return statement.integer(0);
}

std::string Database::query_text(const std::string& sql) {
  Statement statement(*this, sql);
  FATHOM_CHECK(statement.step(), "query_text needs a row: " + sql);
  return std::string(statement.text(0));
}

std::int64_t Database::changes() const {
  return sqlite3_changes64(handle_);
}

void Database::fail(int result_code, std::string_view doing) const {
  const std::string_view fix = sqlite_fix(result_code);
  throw StoreError(
      fmt::format("store: {} {}: {}{}{}", doing, path_, sqlite3_errmsg(handle_), fix.empty() ? "" : "; ", fix));
}

void remove_idle_log(const std::string& path) noexcept {
  sqlite3* handle = nullptr;
  // Closing does it, of a connection that may write, has read and is the last one; SQLite's locks see to that.
  if (sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr) == SQLITE_OK) {
    sqlite3_exec(handle, "SELECT count(*) FROM sqlite_schema", nullptr, nullptr, nullptr);
  }
  sqlite3_close(handle);
}

Statement::Statement(Database& database, std::string_view sql) : database_(&database) {
  const int result = sqlite3_prepare_v3(database.handle(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (result != SQLITE_OK) database.fail(result, "cannot use");
}

Statement::~Statement() {
  sqlite3_finalize(statement_);
}

Statement& Statement::bind(int parameter, std::int64_t value) {
  const int result = sqlite3_bind_int64(statement_, parameter + 1, value);
  FATHOM_CHECK(result == SQLITE_OK, sqlite3_errstr(result));
  return *this;
}

Statement& Statement::bind(int parameter, double value) {
  const int result = sqlite3_bind_double(statement_, parameter + 1, value);
  FATHOM_CHECK(result == SQLITE_OK, sqlite3_errstr(result));
  return *this;
}

Statement& Statement::bind(int parameter, std::string_view text) {
  const char* data = text.data() == nullptr ? "" : text.data();
  const int result = sqlite3_bind_text64(statement_, parameter + 1, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (result != SQLITE_OK) database_->fail(result, "cannot write to");
  return *this;
}

Statement& Statement::bind_blob(int parameter, std::string_view bytes) {
  const char* data = bytes.data() == nullptr ? "" : bytes.data();
  const int result = sqlite3_bind_blob64(statement_, parameter + 1, data, bytes.size(), SQLITE_TRANSIENT);
  if (result != SQLITE_OK) database_->fail(result, "cannot write to");
  return *this;
}

Statement& Statement::bind_null(int parameter) {
  const int result = sqlite3_bind_null(statement_, parameter + 1);
  FATHOM_CHECK(result == SQLITE_OK, sqlite3_errstr(result));
  return *this;
}

bool Statement::step() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  const bool reads = sqlite3_stmt_readonly(statement_) != 0;
  // A statement that failed must be reset before it can be bound again; the connection keeps the message.
  sqlite3_reset(statement_);
  database_->fail(result, reads ? "cannot read" : "cannot write to");
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

std::int64_t Statement::run_returning() {
  FATHOM_CHECK(step(), "the statement returned no row");
  const std::int64_t value = integer(0);
  run();
  return value;
}

std::optional<std::int64_t> Statement::first_integer() {
  std::optional<std::int64_t> value;
  if (step()) value = integer(0);
  reset();
  return value;
}

void Statement::reset() {
  // The result repeats the error of the last step, which step() has thrown already.
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_, column);
}

std::string_view Statement::text(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr ? std::string_view()
                         : std::string_view(static_cast<const char*>(data), static_cast<std::size_t>(size));
}

std::optional<std::int64_t> Statement::optional_integer(int column) const {
  if (is_null(column)) return std::nullopt;
  return integer(column);
}

std::optional<double> Statement::optional_real(int column) const {
  if (is_null(column)) return std::nullopt;
  return real(column);
}

Transaction::Transaction(Database& database) : database_(database) {
  database_.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  // Nothing can be reported from here; SQLite rolls back by itself when the connection ends.
  if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace fathom::store
