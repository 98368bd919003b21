// A smart wallet of a passkey for tests: a contract account whose `__check_auth` takes the signature of a browser's
// authenticator (WebAuthn over P-256) and enforces a total spending limit, counted in its own storage. It is written in
// WebAssembly instructions, since nothing here compiles contracts. It counts the amount of a payment by `transfer` and
// the maximum of a settlement; it refuses any other call.
import { createHash, generateKeyPairSync, sign } from "node:crypto"
import { xdr } from "@stellar/stellar-sdk"
import { constant, environment, type Instructions, leb, section, sized, sleb, text, u32Word } from "./contractModule.ts"
import type { WalletKind } from "./smartWallet.ts"

/** Addresses in the wallet's memory. */
const at = { key: 0, alphabet: 80, payload: 160, challenge: 208 }
const KEY_BYTES = 65
const CHALLENGE_CHARACTERS = 43
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
/** The prefix of the challenge that the wallet expects in the client's data. */
const beforeChallenge = '{"type":"webauthn.get","challenge":"'

/** Imports in order: module, name, parameters. */
const imports = [
  ["b", "3", 2],
  ["b", "1", 4],
  ["b", "f", 3],
  ["b", "e", 2],
  ["c", "_", 1],
  ["c", "3", 3],
  ["x", "0", 2],
  ["x", "5", 1],
  ["v", "1", 2],
  ["v", "3", 1],
  ["m", "1", 2],
  ["l", "_", 3],
  ["l", "0", 2],
  ["l", "1", 2]
] as const
const call = (name: string): Instructions => [
  0x10,
  imports.findIndex(([module, short]) => `${module}.${short}` === name)
]

const I64 = 0x7e
const I32 = 0x7f
const [payload, signature, contexts] = [0, 1, 2]
const [clientData, count, index, spent, context, name, amount] = [3, 4, 5, 6, 7, 8, 9]
const [character, bit] = [10, 11]
const get = (local: number): Instructions => [0x20, local]
const set = (local: number): Instructions => [0x21, local]
const tee = (local: number): Instructions => [0x22, local]
const i32 = (value: number): Instructions => [0x41, ...sleb(BigInt(value))]
const load8 = (offset: number): Instructions => [0x2d, 0, ...leb(offset)]
const store8 = (offset: number): Instructions => [0x3a, 0, ...leb(offset)]
const [loop, when, otherwise, end, drop] = [[0x03, 0x40], [0x04, 0x40], [0x05], [0x0b], [0x1a]]
const i32Is = { mul: [0x6c], add: [0x6a], sub: [0x6b], and: [0x71], or: [0x72], shl: [0x74], shr: [0x76], less: [0x49] }
const i64Is = {
  ...{ zero: [0x50], eq: [0x51], ne: [0x52], less: [0x53], more: [0x55], add: [0x7c], and: [0x83], or: [0x84] },
  ...{ shl: [0x86], shrSigned: [0x87], shr: [0x88] }
}

/** A symbol of at most nine characters as a host value. */
const symbol = (characters: string): Instructions => {
  const order = "_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
  const body = [...characters].reduce((word, one) => (word << 6n) | BigInt(order.indexOf(one) + 1), 0n)
  return constant((body << 8n) | 14n)
}
const u32 = (value: number): Instructions => constant(u32Word(value))
const fail = (code: bigint): Instructions => [...constant((code << 32n) | 3n), ...call("x.5"), ...drop]
const failIf = (condition: Instructions, code: bigint): Instructions => [...condition, ...when, ...fail(code), ...end]
const element = (vector: Instructions, place: number): Instructions => [...vector, ...u32(place), ...call("v.1")]
const field = (key: string): Instructions => [...get(context), ...symbol(key), ...call("m.1")]
const inMemory = (start: number, length: number): Instructions => [...u32(start), ...u32(length), ...call("b.3")]
const INSTANCE = constant(2n)

/** Errors of the wallet. */
const [wrongChallenge, overLimit, notAllowed] = [1n, 2n, 3n]

/** Six bits of the payload at a time become a character. */
const writeChallenge: Instructions = [
  ...[...get(payload), ...u32(0), ...u32(at.payload), ...u32(32), ...call("b.1"), ...drop],
  ...loop,
  ...get(character),
  ...[...get(character), ...i32(6), ...i32Is.mul, ...tee(bit), ...i32(3), ...i32Is.shr, ...load8(at.payload)],
  ...[...i32(8), ...i32Is.shl, ...get(bit), ...i32(3), ...i32Is.shr, ...load8(at.payload + 1), ...i32Is.or],
  ...[...i32(10), ...get(bit), ...i32(7), ...i32Is.and, ...i32Is.sub, ...i32Is.shr, ...i32(63), ...i32Is.and],
  ...[...load8(at.alphabet), ...store8(at.challenge)],
  ...[...get(character), ...i32(1), ...i32Is.add, ...tee(character), ...i32(CHALLENGE_CHARACTERS), ...i32Is.less],
  ...[0x0d, 0],
  ...end
]

const checkSignature: Instructions = [
  ...[...element(get(signature), 1), ...set(clientData)],
  ...failIf(
    [
      ...[...get(clientData), ...u32(beforeChallenge.length)],
      ...[...u32(beforeChallenge.length + CHALLENGE_CHARACTERS), ...call("b.f")],
      ...[...inMemory(at.challenge, CHALLENGE_CHARACTERS), ...call("x.0"), ...constant(0n), ...i64Is.ne]
    ],
    wrongChallenge
  ),
  ...inMemory(at.key, KEY_BYTES),
  ...[...element(get(signature), 0), ...get(clientData), ...call("c._"), ...call("b.e"), ...call("c._")],
  ...[...element(get(signature), 2), ...call("c.3"), ...drop]
]

/** The amount that one of the authorized calls may move, as a host value; 0 for an allowance of a settlement. */
const amountOfCall: Instructions = [
  ...[...get(name), ...symbol("transfer"), ...i64Is.eq, ...when, ...element(field("args"), 2), ...set(amount)],
  ...otherwise,
  ...[...get(name), ...symbol("settle"), ...i64Is.eq, ...when, ...element(field("args"), 3), ...set(amount)],
  ...otherwise,
  ...failIf([...get(name), ...symbol("approve"), ...i64Is.ne], notAllowed),
  ...failIf([...get(index), ...i64Is.zero], notAllowed),
  ...[...constant(11n), ...set(amount), ...end, ...end]
]

const countSpending = (limit: bigint): Instructions => [
  ...[...symbol("spent"), ...INSTANCE, ...call("l.0"), ...constant(1n), ...i64Is.eq, ...when],
  ...[...symbol("spent"), ...INSTANCE, ...call("l.1"), ...constant(8n), ...i64Is.shr, ...set(spent), ...end],
  ...[...get(contexts), ...call("v.3"), ...constant(32n), ...i64Is.shr, ...set(count)],
  ...[...loop, ...get(index), ...get(count), ...i64Is.less, ...when],
  ...[...get(contexts), ...get(index), ...constant(32n), ...i64Is.shl, ...constant(4n), ...i64Is.or, ...call("v.1")],
  ...[...u32(1), ...call("v.1"), ...set(context), ...field("fn_name"), ...set(name)],
  ...amountOfCall,
  // A larger amount than 56 bits is another kind of value, and exceeds any limit.
  ...failIf([...get(amount), ...constant(255n), ...i64Is.and, ...constant(11n), ...i64Is.ne], overLimit),
  ...failIf([...get(amount), ...constant(0n), ...i64Is.less], notAllowed),
  ...[...get(amount), ...constant(8n), ...i64Is.shrSigned, ...get(spent), ...i64Is.add, ...set(spent)],
  ...[...get(index), ...constant(1n), ...i64Is.add, ...set(index), 0x0c, 1, ...end, ...end],
  ...failIf([...get(spent), ...constant(limit), ...i64Is.more], overLimit),
  ...[...symbol("spent"), ...get(spent), ...constant(8n), ...i64Is.shl, ...constant(6n), ...i64Is.or, ...INSTANCE],
  ...[...call("l._"), ...drop]
]

const moduleOf = (publicKey: Uint8Array, limit: bigint): Uint8Array => {
  const body = [...writeChallenge, ...checkSignature, ...countSpending(limit), ...constant(2n), ...end]
  const type = (parameters: number) => [0x60, parameters, ...Array<number>(parameters).fill(I64), 1, I64]
  const memory = (offset: number, bytes: ReadonlyArray<number>) => [0, ...i32(offset), ...end, ...sized(bytes)]
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, ...[0, 1, 2, 3, 4].map(type)),
    ...section(2, ...imports.map(([module, short, parameters]) => [...text(module), ...text(short), 0, parameters])),
    ...section(3, [3]),
    ...section(5, [0, 1]),
    ...section(7, [...text("__check_auth"), 0, imports.length], [...text("memory"), 2, 0]),
    ...section(10, sized([2, 7, I64, 2, I32, ...body])),
    ...section(11, memory(at.key, [...publicKey]), memory(at.alphabet, [...new TextEncoder().encode(alphabet)])),
    ...environment
  ])
}

const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest()

/** A signature may have two values; the network only accepts the smaller one. */
const withLowS = (pair: Uint8Array): Uint8Array => {
  const s = BigInt(`0x${Buffer.from(pair.subarray(32)).toString("hex")}`)
  const low = s > ORDER / 2n ? ORDER - s : s
  return Buffer.concat([pair.subarray(0, 32), Buffer.from(low.toString(16).padStart(64, "0"), "hex")])
}

export interface Passkey extends WalletKind {
  /** The authenticator's signature of a payload other than the requested one. */
  readonly signAnother: (payload: Uint8Array) => xdr.ScVal
}

/** A wallet of a new passkey with a total limit of `limit` atomic units. */
export const passkeyWallet = (limit: bigint): Passkey => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const assertion = (challenged: Uint8Array): xdr.ScVal => {
    const challenge = Buffer.from(challenged).toString("base64url")
    const client = Buffer.from(`${beforeChallenge}${challenge}","origin":"https://wallet.example","crossOrigin":false}`)
    const authenticator = Buffer.concat([sha256(Buffer.from("wallet.example")), Uint8Array.of(0x1d, 0, 0, 0, 0)])
    const signed = sign("sha256", Buffer.concat([authenticator, sha256(client)]), {
      key: privateKey,
      dsaEncoding: "ieee-p1363"
    })
    return xdr.ScVal.scvVec([authenticator, client, withLowS(signed)].map((bytes) => xdr.ScVal.scvBytes(bytes)))
  }
  return {
    wasm: moduleOf(publicKey.export({ format: "der", type: "spki" }).subarray(-KEY_BYTES), limit),
    sign: assertion,
    signAnother: (asked) => assertion(sha256(asked))
  }
}
