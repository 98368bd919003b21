// The three inner loops of the vector scan (`vectorLoops.ts`), with SIMD: JavaScript cannot run sixteen table lookups or
// eight products in parallel. AssemblyScript, compiled to `vectorLoopsWasm.ts` by npm run contract. The module is
// unaware of vectors and does not check its inputs. The caller provides the memory; the places are those of the caller.

const groupsAt: usize = 16_384
const addressesAt: usize = 8_192
const productsAt: usize = 24_576

// @ts-ignore: decorator
@inline
function storeResults(at: usize, sums: v128, delta: f32, base: f32): void {
  const estimates = f32x4.add(f32x4.mul(f32x4.convert_i32x4_u(sums), f32x4.splat(delta)), f32x4.splat(base))
  v128.store(at, f32x4.mul(v128.load(at), estimates), 64)
}

/**
 * Sums table entries chosen by half bytes. Memory: tables of 16 bytes, one for each position of a half byte; from
 * `groupsAt` groups of sixteen codes: rows of 16 bytes, byte v of row r being the half bytes 2r (low) and 2r + 1 (high)
 * of code v; then sixteen factors and sixteen results as float32. Result = factor · (sum · delta + base).
 */
export function scan(groups: i32, rows: i32, delta: f32, base: f32): void {
  const lowHalves = i8x16.splat(0x0f)
  let at = groupsAt
  do {
    let low = i16x8.splat(0)
    let high = i16x8.splat(0)
    let table: usize = 0
    let left = rows
    do {
      const row = v128.load(at)
      const sums = i8x16.add(
        i8x16.swizzle(v128.load(table), v128.and(row, lowHalves)),
        i8x16.swizzle(v128.load(table, 16), v128.and(i16x8.shr_u(row, 4), lowHalves))
      )
      low = i16x8.add(low, i16x8.extend_low_i8x16_u(sums))
      high = i16x8.add(high, i16x8.extend_high_i8x16_u(sums))
      at += 16
      table += 32
    } while (--left)
    storeResults(at, i32x4.extend_low_i16x8_u(low), delta, base)
    storeResults(at + 16, i32x4.extend_high_i16x8_u(low), delta, base)
    storeResults(at + 32, i32x4.extend_low_i16x8_u(high), delta, base)
    storeResults(at + 48, i32x4.extend_high_i16x8_u(high), delta, base)
    at += 128
  } while (--groups)
}

// @ts-ignore: decorator
@inline
function bitsOf(at: usize, bound: f32): i32 {
  return i32x4.bitmask(f32x4.ge(v128.load(at), f32x4.splat(bound)))
}

/**
 * Finds, among the results of `scan`, those of at least a bound. It writes two 32-bit numbers for each group with such
 * results, the group's place and a bit for each of its codes, and returns the address after its output.
 */
export function choose(count: i32, results: usize, stride: i32, bound: f32, out: usize): usize {
  let at = results
  let group = 0
  do {
    const bits =
      bitsOf(at, bound) |
      (bitsOf(at + 16, bound) << 4) |
      (bitsOf(at + 32, bound) << 8) |
      (bitsOf(at + 48, bound) << 12)
    store<i32>(out, group)
    store<i32>(out, bits, 4)
    // The next group overwrites an entry without any bit.
    out += ((bits != 0) as usize) << 3
    group += 1
    at += stride
  } while (--count)
  return out
}

/**
 * Multiplies vectors of bytes with one of 16-bit numbers. Memory: that one from 0, the addresses of the vectors from
 * `addressesAt`, the products as 32-bit numbers from `productsAt`; each vector filled up with zeros to a multiple of 16.
 */
export function dot(count: i32, blocks: i32): void {
  let place = addressesAt
  do {
    let at: usize = load<i32>(place)
    let query: usize = 0
    let sum = i32x4.splat(0)
    let left = blocks
    do {
      const bytes = v128.load(at)
      sum = i32x4.add(sum, i32x4.dot_i16x8_s(i16x8.extend_low_i8x16_s(bytes), v128.load(query)))
      sum = i32x4.add(sum, i32x4.dot_i16x8_s(i16x8.extend_high_i8x16_s(bytes), v128.load(query, 16)))
      at += 16
      query += 32
    } while (--left)
    store<i32>(
      place,
      i32x4.extract_lane(sum, 0) + i32x4.extract_lane(sum, 1) + i32x4.extract_lane(sum, 2) + i32x4.extract_lane(sum, 3),
      productsAt - addressesAt
    )
    place += 4
  } while (--count)
}
