// Reads XDR by the SDK's own schemas, and returns exactly the objects that the SDK's reader returns, several times
// faster: each schema is compiled once into a chain of functions, and only the value is allocated. It is as strict: an
// unknown discriminant, padding other than zero, a bool above one, a length beyond its bound or the input, trailing
// bytes and too deep a nesting all throw. So a value has one encoding only: the bytes it was read from. For the parts
// that are signed or compared it keeps those bytes with the value (`bytesRead`), so that we never hash re-encoded
// bytes. Byte fields are views of the input, which must not be changed.
import { objectSlot } from "../cache/objectSlot.ts"
import { joinedBytes } from "./joinBytes.ts"

/** The SDK's description of a type. */
interface Schema<T> {
  readonly kind: string
  readonly decode: (bytes: Uint8Array) => T
}

type AnySchema = Schema<unknown>
type Arm = { readonly kind: "field"; readonly name: string; readonly schema: AnySchema } | AnySchema

/** The members of a schema that describe it, by kind. */
interface Shape extends AnySchema {
  readonly name?: string
  readonly entries: ReadonlyArray<readonly [string, AnySchema]>
  readonly element: AnySchema
  readonly length: number
  readonly maxLength: number
  readonly nameByValue: ReadonlyMap<number, string>
  readonly switchOn: AnySchema
  readonly switchKey: string
  readonly cases: ReadonlyArray<{ readonly discriminant: unknown; readonly arm: Arm }>
  readonly defaultArm?: Arm
  readonly getSchema: () => AnySchema
}

/** The position of a reader. */
interface Cursor {
  readonly bytes: Uint8Array
  readonly view: DataView
  readonly end: number
  readonly depthMax: number
  at: number
  depth: number
}

type Read = (cursor: Cursor) => unknown

/** The bytes are not one value of the type. Thrown without a stack, because anyone may send such bytes. */
class XdrMalformed {
  readonly _tag = "XdrMalformed"
}

const malformed = new XdrMalformed()

/** Types with kept bytes: we sign and compare these, and pass them on as received. */
const keptNames = new Set(["InvokeContractArgs", "Operation", "SorobanAuthorizedInvocation"])
const receivedBytes = objectSlot<object, Uint8Array>()

/** The bytes that a value of one of those types was read from; undefined for a value that we made. */
export const bytesRead = (value: object): Uint8Array | undefined => receivedBytes.get(value)

const take = (cursor: Cursor, bytes: number): number => {
  const { at } = cursor
  if (cursor.end - at < bytes) throw malformed
  cursor.at = at + bytes
  return at
}

const enter = (cursor: Cursor): void => {
  if (++cursor.depth > cursor.depthMax) throw malformed
}

const uint32 = (cursor: Cursor): number => cursor.view.getUint32(take(cursor, 4), false)
const int32 = (cursor: Cursor): number => cursor.view.getInt32(take(cursor, 4), false)
const int64: Read = (cursor) => cursor.view.getBigInt64(take(cursor, 8), false)
const uint64: Read = (cursor) => cursor.view.getBigUint64(take(cursor, 8), false)

const bool = (cursor: Cursor): boolean => {
  const value = uint32(cursor)
  if (value > 1) throw malformed
  return value === 1
}

/** The given number of bytes, and the zeros that pad the last word. */
const opaque = (cursor: Cursor, length: number): Uint8Array => {
  const at = take(cursor, length)
  const padding = (4 - (length & 3)) & 3
  const from = take(cursor, padding)
  for (let i = from; i < from + padding; i++) if (cursor.bytes[i] !== 0) throw malformed
  return cursor.bytes.subarray(at, at + length)
}

const bounded = (cursor: Cursor, lengthMax: number): number => {
  const length = uint32(cursor)
  if (length > lengthMax) throw malformed
  return length
}

const elements = (cursor: Cursor, length: number, read: Read): Array<unknown> => {
  // Each element takes at least one byte, so a length that the input cannot hold allocates nothing.
  if (length > cursor.end - cursor.at) throw malformed
  const values: Array<unknown> = []
  for (let i = 0; i < length; i++) {
    const before = cursor.at
    values.push(read(cursor))
    if (cursor.at === before) throw malformed
  }
  return values
}

const struct = (entries: ReadonlyArray<readonly [string, Read]>): Read => {
  const names = entries.map(([name]) => name)
  const reads = entries.map(([, read]) => read)
  return (cursor) => {
    enter(cursor)
    const value: Record<string, unknown> = {}
    for (let i = 0; i < reads.length; i++) value[names[i]!] = reads[i]!(cursor)
    cursor.depth--
    return value
  }
}

interface ReadArm {
  /** Undefined for an arm without a value. */
  readonly name: string | undefined
  readonly read: Read
}

const armOf = (arm: Arm): ReadArm =>
  "schema" in arm ? { name: arm.name, read: readerOf(arm.schema) } : { name: undefined, read: readerOf(arm) }

const union = ({ cases, defaultArm, switchKey, switchOn }: Shape): Read => {
  const readSwitch = readerOf(switchOn)
  const arms = new Map(cases.map(({ arm, discriminant }) => [discriminant, armOf(arm)]))
  const otherwise = defaultArm === undefined ? undefined : armOf(defaultArm)
  return (cursor) => {
    enter(cursor)
    const discriminant = readSwitch(cursor)
    const arm = arms.get(discriminant) ?? otherwise
    if (arm === undefined) throw malformed
    const value: Record<string, unknown> = {}
    value[switchKey] = discriminant
    const inside = arm.read(cursor)
    if (arm.name !== undefined) value[arm.name] = inside
    cursor.depth--
    return value
  }
}

/** The SDK wraps the bytes of a text in a separate object. */
const text = (schema: Shape): Read => {
  const { maxLength } = schema
  const Text = (schema.decode(new Uint8Array(4)) as object).constructor as new (bytes: Uint8Array) => unknown
  return (cursor) => new Text(opaque(cursor, bounded(cursor, maxLength)))
}

const compile = (schema: Shape): Read => {
  switch (schema.kind) {
    case "void":
      return () => undefined
    case "bool":
      return bool
    case "int32":
      return int32
    case "uint32":
      return uint32
    case "int64":
      return int64
    case "uint64":
      return uint64
    case "enum": {
      const { nameByValue } = schema
      return (cursor) => {
        const value = int32(cursor)
        if (!nameByValue.has(value)) throw malformed
        return value
      }
    }
    case "opaque": {
      const { length } = schema
      return (cursor) => opaque(cursor, length)
    }
    case "varOpaque": {
      const { maxLength } = schema
      return (cursor) => opaque(cursor, bounded(cursor, maxLength))
    }
    case "string":
      return text(schema)
    default:
      return compileNested(schema)
  }
}

/** Each of these adds one level of nesting. */
const compileNested = (schema: Shape): Read => {
  const within =
    (read: Read): Read =>
    (cursor) => {
      enter(cursor)
      const value = read(cursor)
      cursor.depth--
      return value
    }
  switch (schema.kind) {
    case "array": {
      const { maxLength } = schema
      const read = readerOf(schema.element)
      return within((cursor) => elements(cursor, bounded(cursor, maxLength), read))
    }
    case "fixedArray": {
      const { length } = schema
      const read = readerOf(schema.element)
      return within((cursor) => elements(cursor, length, read))
    }
    case "option": {
      const read = readerOf(schema.element)
      return within((cursor) => (bool(cursor) ? read(cursor) : null))
    }
    // Recursive types recur through one of these: it is compiled when it is first read.
    case "lazy": {
      let read: Read | undefined
      return within((cursor) => (read ??= readerOf(schema.getSchema()))(cursor))
    }
    case "struct":
      return struct(schema.entries.map(([name, field]) => [name, readerOf(field)]))
    case "union":
      return union(schema)
    default:
      throw new Error(`XDR of an unknown kind: ${schema.kind}`)
  }
}

const keeping =
  (read: Read): Read =>
  (cursor) => {
    const from = cursor.at
    const value = read(cursor) as object
    receivedBytes.set(value, cursor.bytes.subarray(from, cursor.at))
    return value
  }

const readers = new WeakMap<object, Read>()

const readerOf = (schema: AnySchema): Read => {
  const reader = readers.get(schema)
  if (reader !== undefined) return reader
  const shape = schema as Shape
  const read = shape.kind === "struct" && keptNames.has(shape.name ?? "") ? keeping(compile(shape)) : compile(shape)
  readers.set(schema, read)
  return read
}

/** Without a DataView, which would allocate a separate buffer outside the heap for these few bytes. */
export const uint32Bytes = (value: number): Uint8Array => Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value)

export const int64Bytes = (value: bigint): Uint8Array => {
  const low = Number(BigInt.asUintN(32, value))
  const high = Number(BigInt.asUintN(32, value >> 32n))
  return joinedBytes(uint32Bytes(high), uint32Bytes(low))
}

/** Default maximum nesting: the SDK's. */
const depthMaxOfSdk = 1_500

/** The only value that the bytes encode; throws on any other bytes. */
export const readXdr = <T>(schema: Schema<T>, bytes: Uint8Array, depthMax: number = depthMaxOfSdk): T => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const cursor: Cursor = { bytes, view, end: bytes.length, depthMax, at: 0, depth: 0 }
  const value = readerOf(schema)(cursor) as T
  if (cursor.at !== cursor.end) throw malformed
  return value
}
