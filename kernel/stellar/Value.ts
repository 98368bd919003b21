// Contract values. Each reader returns undefined for a value of any other type, so that a caller reads the value it
// needs and checks once. Each maker writes the protocol's form.
import { xdr } from "@stellar/stellar-sdk/base"
import { addressText, contractAddressOf, isMuxedAddress } from "./Address.ts"
import { valueKind } from "./kinds.ts"

export type Value = xdr.ScValWire

const text = new TextDecoder()

/** The bytes of an XDR symbol or string, as text. */
export const symbolText = (value: unknown): string =>
  typeof value === "string"
    ? value
    : text.decode((value as { readonly bytes?: Uint8Array }).bytes ?? (value as Uint8Array))

export const symbolOf = (value: Value | undefined): string | undefined =>
  value?.type === valueKind.symbol ? symbolText(value.sym) : undefined

export const addressOf = (value: Value | undefined): string | undefined =>
  value?.type === valueKind.address ? addressText(value.address) : undefined

/** Whether a value is an address that carries a number in addition to the account. */
export const isMuxed = (value: Value | undefined): boolean =>
  value?.type === valueKind.address && isMuxedAddress(value.address)

export const i128Of = (value: Value | undefined): bigint | undefined =>
  value?.type === valueKind.i128
    ? (BigInt(value.i128.hi) << 64n) + BigInt.asUintN(64, BigInt(value.i128.lo))
    : undefined

export const u32Of = (value: Value | undefined): number | undefined =>
  value?.type === valueKind.u32 ? value.u32 : undefined

export const u64Of = (value: Value | undefined): bigint | undefined =>
  value?.type === valueKind.u64 ? BigInt(value.u64) : undefined

export const boolOf = (value: Value | undefined): boolean | undefined =>
  value?.type === valueKind.bool ? value.b : undefined

export const bytesOf = (value: Value | undefined): Uint8Array | undefined =>
  value?.type === valueKind.bytes ? (value.bytes as Uint8Array) : undefined

export const vecOf = (value: Value | undefined): ReadonlyArray<Value> | undefined =>
  value?.type === valueKind.vec ? (value.vec ?? undefined) : undefined

export const entriesOf = (value: Value | undefined): ReadonlyArray<xdr.ScMapEntryWire> | undefined =>
  value?.type === valueKind.map ? (value.map ?? undefined) : undefined

/** The fields of a map with symbols as keys; a key of another type becomes the empty name. */
export const fieldsOf = (value: Value | undefined): ReadonlyMap<string, Value> | undefined =>
  value?.type === valueKind.map
    ? new Map((value.map ?? []).map(({ key, val }) => [symbolOf(key) ?? "", val]))
    : undefined

export const isVoid = (value: Value | undefined): boolean => value?.type === valueKind.void

export const voidValue: Value = { type: valueKind.void }

export const symbolValue = (text: string): Value => ({ type: valueKind.symbol, sym: text }) as unknown as Value

export const i128Value = (amount: bigint): Value => ({
  type: valueKind.i128,
  i128: { hi: BigInt.asIntN(64, amount >> 64n), lo: BigInt.asUintN(64, amount) }
})

export const u32Value = (value: number): Value => ({ type: valueKind.u32, u32: value })

export const u64Value = (value: bigint): Value => ({ type: valueKind.u64, u64: value })

export const boolValue = (value: boolean): Value => ({ type: valueKind.bool, b: value })

/** An account (G…) or a contract (C…); throws on other text. */
export const addressValue = (address: string): Value => ({
  type: valueKind.address,
  address: contractAddressOf(address)
})

export const bytesValue = (bytes: Uint8Array): Value => ({ type: valueKind.bytes, bytes }) as unknown as Value

export const vecValue = (values: ReadonlyArray<Value>): Value =>
  ({ type: valueKind.vec, vec: [...values] }) as unknown as Value

/** A map with symbols as keys, in the given order; the protocol requires the keys sorted. */
export const mapValue = (fields: ReadonlyArray<readonly [name: string, value: Value]>): Value =>
  ({
    type: valueKind.map,
    map: fields.map(([sym, val]) => ({ key: { type: valueKind.symbol, sym }, val }))
  }) as unknown as Value

export const encodeValue = (value: Value): Uint8Array => xdr.ScVal.schema.encode(value)
