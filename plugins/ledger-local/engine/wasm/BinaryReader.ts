// Reads the binary form of WebAssembly: bytes, LEB128 integers, names and sections. Everything is bounded by the
// module's own length, and anything that does not fit is a `Malformed`, which callers turn into the host's refusal of
// the module.
export class Malformed extends Error {
  readonly code: "InvalidAction" | "InvalidInput"

  constructor(message: string, code: "InvalidAction" | "InvalidInput" = "InvalidAction") {
    super(message)
    this.code = code
  }
}

export class BinaryReader {
  readonly bytes: Uint8Array
  at: number
  readonly end: number

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    if (end > bytes.length || at > end) throw new Malformed("section beyond the module")
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  get done(): boolean {
    return this.at >= this.end
  }

  byte(): number {
    if (this.at >= this.end) throw new Malformed("unexpected end")
    return this.bytes[this.at++]!
  }

  skip(count: number): void {
    if (count < 0 || this.at + count > this.end) throw new Malformed("unexpected end")
    this.at += count
  }

  u32(): number {
    let result = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte()
      result += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) {
        if (result > 0xffff_ffff) throw new Malformed("integer too large")
        return result
      }
    }
    throw new Malformed("integer too long")
  }

  /** Passes over a signed LEB128 of any size. */
  skipLeb(): void {
    for (let i = 0; i < 10; i++) if (this.byte() < 0x80) return
    throw new Malformed("integer too long")
  }

  take(count: number): Uint8Array {
    const from = this.at
    this.skip(count)
    return this.bytes.subarray(from, this.at)
  }

  name(): string {
    return new TextDecoder().decode(this.take(this.u32()))
  }
}

export const leb = (value: number): Array<number> => {
  const out: Array<number> = []
  let rest = value
  do {
    const low = rest % 128
    rest = Math.floor(rest / 128)
    out.push(rest > 0 ? low + 128 : low)
  } while (rest > 0)
  return out
}

/** Signed LEB128 of a non-negative value. */
export const signedLeb = (value: number): Array<number> => {
  const out: Array<number> = []
  let rest = value
  for (;;) {
    const low = rest % 128
    rest = Math.floor(rest / 128)
    if (rest === 0 && low < 64) {
      out.push(low)
      return out
    }
    out.push(low + 128)
  }
}
