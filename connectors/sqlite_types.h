#pragma once
// SQLite's declared types, and what its type affinity does to the values that are written.
#include <string>
#include <string_view>

#include "core/column.h"

namespace flow {

// How SQLite treats values that are written to a column (datatype3.html, section 3.1).
enum class Affinity : std::uint8_t { blob, text, integer, real, numeric };
Affinity affinity_of(std::string_view declared);
inline bool turns_text_into_numbers(Affinity affinity) {
  return affinity == Affinity::integer || affinity == Affinity::real ||
         affinity == Affinity::numeric;
}

enum class Strictness : std::uint8_t { flexible, strict };

// The type that values are cast to, from the column's declaration. Fills type, limits and
// type_text. A declaration that means nothing to flow is Type::any.
Column column_declared(std::string name, std::string_view declared, Strictness strictness);
Affinity affinity_in(std::string_view declared, Strictness strictness);

// The declaration of a column to create, such that column_declared() gives the type back. Decimals
// and JSON keep their digits: their declaration has TEXT affinity. As a key a decimal is NUMERIC,
// so that 1.5 is 1.50.
enum class Role : std::uint8_t { plain, key };
std::string declaration_for(Type type, const Limits& limits, Role role);

// Columns of a numeric affinity turn text that looks like a number into one. A value is written to
// them only if nothing of it is lost:
//   a decimal: an integer of 64 bits, or at most 15 significant digits within 1e-290 to 1e290
//   any other text: does not look like a number
bool decimal_kept(std::string_view token);
bool text_kept(std::string_view text);

}  // namespace flow
