// Encodes XDR into one reused buffer. The SDK's `encode` allocates eight kilobytes for every value, while most values
// here have a hundred bytes: a simulation encodes some twenty. Codecs write through the library's interface for authors
// of codecs; the output is the same, byte by byte. Not thread-safe and not reentrant: a codec never encodes while it
// writes.
import { XdrError, type XdrType } from "@stellar/stellar-sdk/xdr"

/** The library has the same limit. */
const DEPTH_MAX = 1_500
const BUFFER_BYTES = 65_536
/** A larger buffer than this is given back after use. */
const BUFFER_BYTES_KEPT = 1_048_576

/** As the library's `Writer`, to a buffer that is used again. */
class ReusedWriter {
  offset = 0
  #buffer = new Uint8Array(BUFFER_BYTES)
  #view = new DataView(this.#buffer.buffer)
  #depth = 0

  reset(): void {
    this.offset = 0
    this.#depth = 0
    if (this.#buffer.length > BUFFER_BYTES_KEPT) this.#take(new Uint8Array(BUFFER_BYTES))
  }

  toUint8Array(): Uint8Array {
    return this.#buffer.slice(0, this.offset)
  }

  enter(path: string): void {
    this.#depth += 1
    if (this.#depth > DEPTH_MAX) throw new XdrError(`${path}: max recursion depth ${DEPTH_MAX} exceeded`)
  }

  exit(): void {
    this.#depth -= 1
  }

  writeBytes(bytes: Uint8Array): void {
    const at = this.#advance(bytes.length)
    this.#buffer.set(bytes, at)
  }

  writePadding(length: number): void {
    const padding = (4 - (length % 4)) % 4
    const at = this.#advance(padding)
    this.#buffer.fill(0, at, at + padding)
  }

  writeInt32(value: number): void {
    const at = this.#advance(4)
    this.#view.setInt32(at, value)
  }

  writeUint32(value: number): void {
    const at = this.#advance(4)
    this.#view.setUint32(at, value)
  }

  writeBigInt64(value: bigint): void {
    const at = this.#advance(8)
    this.#view.setBigInt64(at, value)
  }

  writeBigUint64(value: bigint): void {
    const at = this.#advance(8)
    this.#view.setBigUint64(at, value)
  }

  writeFloat32(value: number): void {
    const at = this.#advance(4)
    this.#view.setFloat32(at, value)
  }

  writeFloat64(value: number): void {
    const at = this.#advance(8)
    this.#view.setFloat64(at, value)
  }

  #take(buffer: Uint8Array<ArrayBuffer>): void {
    this.#buffer = buffer
    this.#view = new DataView(buffer.buffer)
  }

  /** Reserves the next `length` bytes; may replace the buffer. */
  #advance(length: number): number {
    const at = this.offset
    const end = at + length
    if (end > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(end, 2 * this.#buffer.length))
      larger.set(this.#buffer.subarray(0, at))
      this.#take(larger)
    }
    this.offset = end
    return at
  }
}

/** True for the library's refusal of bytes that nest values more deeply than it follows. */
export const isDepthError = (error: unknown): boolean =>
  error instanceof XdrError && error.message.includes("max recursion depth")

interface Codec<T> {
  /** Throws `XdrError` on a value of another type. */
  readonly encode: (value: T) => Uint8Array
  /** Throws `XdrError` on bytes that do not encode the type, or have a rest. */
  readonly decode: (bytes: Uint8Array) => T
}

const writer = new ReusedWriter()

/** The codec of an SDK type, without a buffer for each value. */
export const codecOf = <T>(schema: XdrType<T>): Codec<T> => {
  const name = schema.name ?? schema.kind
  return {
    encode: (value) => {
      writer.reset()
      // The library's Writer is a class with private parts; a codec only sees the methods above.
      schema._write(value, writer as never, name)
      return writer.toUint8Array()
    },
    decode: (bytes) => schema.decode(bytes)
  }
}
