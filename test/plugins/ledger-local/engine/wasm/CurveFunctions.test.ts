// Host functions on BLS12-381, BN254 and Poseidon, called by a module that passes its arguments on. The vectors are
// those of RFC 9380 (appendices J.9.1 and J.10.1), of EIP-197, of circomlib's Poseidon and of the reference of
// Poseidon2; the instructions are those of stellar's own host, from its published observations of such calls.
import { grainGenConstants } from "@noble/curves/abstract/poseidon.js"
import { bls12_381 } from "@noble/curves/bls12-381.js"
import { bn254 } from "@noble/curves/bn254.js"
import { describe, expect, it } from "vitest"
import { contractIdOf } from "../../../../../plugins/ledger-local/engine/host/createContract.ts"
import type { HostResult } from "../../../../../plugins/ledger-local/engine/host/HostResult.ts"
import { InstructionMeter } from "../../../../../plugins/ledger-local/engine/host/InstructionMeter.ts"
import type { ContractHost } from "../../../../../plugins/ledger-local/engine/host/HostTypes.ts"
import { HostError } from "../../../../../plugins/ledger-local/engine/host/HostError.ts"
import { cpuCosts } from "../../../../../plugins/ledger-local/engine/state/cpuCosts.ts"
import { curveFunctions } from "../../../../../plugins/ledger-local/engine/wasm/curveFunctions.ts"
import { poseidonFunctions } from "../../../../../plugins/ledger-local/engine/wasm/poseidonFunctions.ts"
import { bigOf, u256 } from "../../../../../plugins/ledger-local/engine/wasm/Values.ts"
import { Vm } from "../../../../../plugins/ledger-local/engine/wasm/Vm.ts"
import { bool, bytes, sym, u32, u64, vec } from "../../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { contractAddress, type ScVal, xdrText } from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { crypto, errorOf, networkId, sponsor, succeeded } from "../World.ts"
import { execute, I64, section, text, world } from "./assemble.ts"

const hex = (digits: string): Uint8Array => Uint8Array.from(Buffer.from(digits, "hex"))
const be = (value: bigint, length: number): Uint8Array => hex(value.toString(16).padStart(2 * length, "0"))
const joined = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => Uint8Array.from(Buffer.concat(parts))
const environment = [
  0,
  ...((content: ReadonlyArray<number>) => [content.length, ...content])([
    ...text("contractenvmetav0"),
    ...[0, 0, 0, 0, 0, 0, 0, 26, 0, 0, 0, 0]
  ])
]

/** A module whose `run` passes its arguments unchanged to the host function `name`. */
const handingOn = (name: string, count: number): Uint8Array => {
  const body = [0, ...Array.from({ length: count }, (_, i) => [0x20, i]).flat(), 0x10, 0, 0x0b]
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [0x60, count, ...Array<number>(count).fill(I64), 1, I64]),
    ...section(2, [...text("c"), ...text(name), 0, 0]),
    ...section(3, [0]),
    ...section(7, [...text("run"), 0, 1]),
    ...section(10, [body.length, ...body]),
    ...environment
  ])
}

const call = (name: string, ...args: Array<ScVal>): HostResult => {
  const [on, code] = [world(), handingOn(name, args.length)]
  succeeded(execute(on, { type: 2, wasm: code })).changes.commit()
  const contractIdPreimage = { type: 0 as const, fromAddress: { address: sponsor.address, salt: new Uint8Array(32) } }
  const executable = { type: 0 as const, wasmHash: crypto.sha256(code) }
  succeeded(execute(on, { type: 1, createContract: { contractIdPreimage, executable } })).changes.commit()
  const id = contractIdOf(crypto, networkId, contractIdPreimage)
  const invokeContract = { contractAddress: contractAddress(id), functionName: xdrText("run"), args }
  return execute(on, { type: 0, invokeContract })
}

const value = (result: HostResult): ScVal => succeeded(result).returnValue
const INVALID = /^Error\(Crypto, InvalidInput\)/

const [G1, G2] = [bls12_381.G1.Point, bls12_381.G2.Point]
const [N1, N2] = [bn254.G1.Point, bn254.G2.Point]
type P1 = InstanceType<typeof G1>
type P2 = InstanceType<typeof G2>

const g1 = (point: P1): ScVal => bytes(point.toBytes(false))
const g2 = (point: P2): ScVal => bytes(point.toBytes(false))
const n1 = (point: P1): ScVal => bytes(point.is0() ? new Uint8Array(64) : joined(be(point.x, 32), be(point.y, 32)))
const n2 = (point: P2): ScVal => {
  const { x, y } = point.toAffine()
  return bytes(joined(be(x.c1, 32), be(x.c0, 32), be(y.c1, 32), be(y.c0, 32)))
}
const scalar = (number: bigint): ScVal => u256(number)
const flagged = (point: ScVal, flag: number, at = 0): ScVal => {
  const content = Uint8Array.from(point.type === 13 ? point.bytes : [])
  content[at]! |= flag
  return bytes(content)
}

/** On the curve, but of another order: mapped there without clearing the cofactor. */
const outside1 = hex(
  "11a3cce7e1d90975990066b2f2643b9540fa40d6137780df4e753a8054d07580db3b7f1f03396333d4a359d1fe3766fe" +
    "0eeaf6d794e479e270da10fdaf768db4c96b650a74518fc67b04b03927754bac66f3ac720404f339ecdcc028afa091b7"
)
const outside2 = hex(
  "171c88b0b0efb5eb2b88913a9e74fe111a4f68867b59db252ce5868af4d1254bfab77ebde5d61cd1a86fb2fe4a5a1c1d" +
    "019ad3fc9c72425a998d7ab1ea0e646a1f6093444fc6965f1cad5a3195a7b1e099c050d57f45e3fa191cc6d75ed7458c" +
    "0eb22c7a543d3d376e9716a49b72e79a89c9bfe9feee8533ed931cbb5373dde1fbcd7411d8052e02693654f71e15410a" +
    "0ba10604e62bdd9eeeb4156652066167b72c8d743b050fb4c1016c31b505129374f76e03fa127d6a156213576910fef3"
)
const infinity1 = g1(G1.ZERO)
const p = G1.BASE.multiply(12_345n)
const q = G2.BASE.multiply(777n)

describe("BLS12-381", () => {
  it("maps fields to BLS12-381 as RFC 9380, before clearing the cofactor", () => {
    const u1 = hex("0ba14bd907ad64a016293ee7c2d276b8eae71f25a4b941eece7b0d89f17f75cb3ae5438a614fb61d6835ad59f29c564f")
    expect(value(call("8", bytes(u1)))).toEqual(bytes(outside1))
    const u2 = hex(
      "05a2acec64114845711a54199ea339abd125ba38253b70a92c876df10598bd1986b739cad67961eb94f7076511b3b39a" +
        "03dbc2cce174e91ba93cbb08f26b917f98194a2ea08d1cce75b2b9cc9f21689d80bd79b594a613d0a68eb807dfdc1cf8"
    )
    expect(value(call("e", bytes(u2)))).toEqual(bytes(outside2))
    const prime = be(bls12_381.fields.Fp.ORDER, 48)
    for (const bad of [prime, u1.subarray(1), joined(u1, u1)]) expect(errorOf(call("8", bytes(bad)))).toMatch(INVALID)
    expect(errorOf(call("e", bytes(joined(u1, prime))))).toMatch(INVALID)
  })

  it("hashes to BLS12-381 as RFC 9380, domains of 1 to 255 bytes", () => {
    const domain = bytes(Buffer.from("QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_"))
    const message = bytes(new TextEncoder().encode("abc"))
    expect(value(call("9", message, domain))).toEqual(
      bytes(
        hex(
          "03567bc5ef9c690c2ab2ecdf6a96ef1c139cc0b2f284dca0a9a7943388a49a3aee664ba5379a7655d3c68900be2f6903" +
            "0b9c15f3fe6e5cf4211f346271d7b01c8f3b28be689c8429c85b67af215533311f0b8dfaaa154fa6b88176c229f2885d"
        )
      )
    )
    const second = bytes(Buffer.from("QUUX-V01-CS02-with-BLS12381G2_XMD:SHA-256_SSWU_RO_"))
    expect(value(call("f", message, second))).toEqual(
      bytes(
        hex(
          "139cddbccdc5e91b9623efd38c49f81a6f83f175e80b06fc374de9eb4b41dfe4ca3a230ed250fbe3a2acf73a41177fd8" +
            "02c2d18e033b960562aae3cab37a27ce00d80ccd5ba4b7fe0e7a210245129dbec7780ccc7954725f4168aff2787776e6" +
            "00aa65dae3c8d732d10ecd2c50f8a1baf3001578f71c694e03866e9f3d49ac1e1ce70dd94a733534f106d4cec0eddd16" +
            "1787327b68159716a37440985269cf584bcb1e621d3a7202be6ea05c4cfe244aeb197642555a0645fb87bf7466b2ba48"
        )
      )
    )
    for (const bad of [new Uint8Array(), new Uint8Array(256)])
      expect(errorOf(call("9", message, bytes(bad)))).toMatch(INVALID)
    expect(value(call("9", message, bytes(new Uint8Array(255))))).toMatchObject({ type: 13 })
  })

  it("adds and multiplies points, infinity included, and takes scalars modulo the order", () => {
    expect(value(call("5", g1(p), g1(p)))).toEqual(g1(p.double()))
    expect(value(call("5", g1(p), g1(p.negate())))).toEqual(infinity1)
    expect(value(call("5", infinity1, g1(p)))).toEqual(g1(p))
    expect(value(call("b", g2(q), g2(q.double())))).toEqual(g2(q.multiply(3n)))
    const order = bls12_381.fields.Fr.ORDER
    expect(value(call("6", g1(p), scalar(order + 7n)))).toEqual(g1(p.multiply(7n)))
    expect(value(call("6", g1(p), scalar(0n)))).toEqual(infinity1)
    expect(value(call("c", g2(q), scalar(order - 1n)))).toEqual(g2(q.negate()))
    const many = call("7", vec([g1(p), infinity1, g1(p)]), vec([scalar(2n), scalar(5n), scalar(order + 9n)]))
    expect(value(many)).toEqual(g1(p.multiply(11n)))
    expect(value(call("d", vec([g2(q), g2(q)]), vec([scalar(2n), scalar(0n)])))).toEqual(g2(q.double()))
    for (const name of ["7", "d"]) {
      expect(errorOf(call(name, vec([]), vec([])))).toMatch(INVALID)
      expect(errorOf(call(name, vec([name === "7" ? g1(p) : g2(q)]), vec([])))).toMatch(INVALID)
    }
  })

  it("accepts points outside the subgroup for addition only", () => {
    const [near, far] = [bytes(outside1), bytes(outside2)]
    expect(value(call("5", near, infinity1))).toEqual(near)
    expect(value(call("4", g1(p)))).toEqual(bool(true))
    expect(value(call("4", infinity1))).toEqual(bool(true))
    expect(value(call("4", near))).toEqual(bool(false))
    expect(value(call("a", g2(q)))).toEqual(bool(true))
    expect(value(call("a", far))).toEqual(bool(false))
    expect(errorOf(call("6", near, scalar(1n)))).toMatch(INVALID)
    expect(errorOf(call("d", vec([far]), vec([scalar(1n)])))).toMatch(INVALID)
    expect(errorOf(call("g", vec([near]), vec([g2(q)])))).toMatch(INVALID)
    expect(value(call("x", near))).toEqual(bool(true))
    expect(value(call("y", far))).toEqual(bool(true))
    // Zeros without the flag do not mean infinity here, and (1, 0) is on no curve.
    for (const nowhere of [new Uint8Array(96), new Uint8Array(96).with(47, 1)])
      expect(value(call("x", bytes(nowhere)))).toEqual(bool(false))
  })

  it("refuses BLS12-381 points with flags, bad length, range or curve", () => {
    const prime = be(bls12_381.fields.Fp.ORDER, 48)
    const good = p.toBytes(false)
    const bad = [
      bytes(good.subarray(1)),
      bytes(joined(good, Uint8Array.of(0))),
      bytes(new Uint8Array()),
      flagged(g1(p), 0x80),
      flagged(g1(p), 0x40),
      flagged(g1(p), 0x20),
      flagged(infinity1, 1, 95),
      flagged(infinity1, 0x80),
      bytes(joined(prime, good.subarray(48))),
      bytes(joined(good.subarray(0, 48), prime)),
      flagged(g1(p), 0xe0, 48)
    ]
    for (const point of bad) for (const name of ["4", "x"]) expect(errorOf(call(name, point))).toMatch(INVALID)
    for (const point of [...bad, bytes(new Uint8Array(96))]) expect(errorOf(call("5", g1(p), point))).toMatch(INVALID)
    expect(errorOf(call("5", u32(1), g1(p)))).toMatch(/^Error\(Value, UnexpectedType\)/)
  })

  it("checks products of pairings, in which infinity counts for one", () => {
    const pairs = (ps: Array<P1>, qs: Array<P2>): HostResult => call("g", vec(ps.map(g1)), vec(qs.map(g2)))
    expect(value(pairs([p, p.negate()], [q, q]))).toEqual(bool(true))
    expect(value(pairs([p, p], [q, q]))).toEqual(bool(false))
    expect(value(pairs([p.multiply(6n), p.negate()], [q, q.multiply(6n)]))).toEqual(bool(true))
    expect(value(pairs([G1.ZERO, p], [q, G2.ZERO]))).toEqual(bool(true))
    expect(value(pairs([G1.ZERO, p], [q, q]))).toEqual(bool(false))
    expect(errorOf(pairs([], []))).toMatch(INVALID)
    expect(errorOf(pairs([p], [q, q]))).toMatch(INVALID)
  })
})

describe("BN254", () => {
  const order = bn254.fields.Fr.ORDER
  const [a, b] = [N1.BASE.multiply(55n), N2.BASE.multiply(66n)]

  it("adds and multiplies points; infinity is all zeros", () => {
    expect(value(call("m", n1(a), n1(a)))).toEqual(n1(a.double()))
    expect(value(call("m", n1(a), n1(a.negate())))).toEqual(bytes(new Uint8Array(64)))
    expect(value(call("n", n1(a), scalar(order + 3n)))).toEqual(n1(a.multiply(3n)))
    expect(value(call("r", vec([n1(a), n1(N1.ZERO)]), vec([scalar(4n), scalar(9n)])))).toEqual(n1(a.multiply(4n)))
    expect(errorOf(call("r", vec([]), vec([])))).toMatch(INVALID)
  })

  it("refuses BN254 points with flags, bad length, range, curve or order", () => {
    const good = n1(a)
    const content = good.type === 13 ? good.bytes : new Uint8Array()
    const prime = be(bn254.fields.Fp.ORDER, 32)
    const bad = [
      flagged(good, 0x80),
      flagged(good, 0x40),
      flagged(good, 0x80, 32),
      flagged(n1(N1.ZERO), 0x40),
      bytes(content.subarray(1)),
      bytes(joined(prime, content.subarray(32))),
      bytes(joined(content.subarray(0, 32), prime))
    ]
    for (const point of bad) {
      expect(errorOf(call("z", point))).toMatch(INVALID)
      expect(errorOf(call("m", point, good))).toMatch(INVALID)
    }
    const off = bytes(joined(content.subarray(0, 32), be(1n, 32)))
    expect(value(call("z", off))).toEqual(bool(false))
    expect(value(call("z", good))).toEqual(bool(true))
    expect(value(call("z", bytes(new Uint8Array(64))))).toEqual(bool(true))
    expect(errorOf(call("m", off, good))).toMatch(INVALID)
    // x = 1 has a square root on the twist, which has a far larger order than the subgroup.
    const { Fp2 } = bn254.fields
    for (let c0 = 1n; ; c0++) {
      const x = Fp2.fromBigTuple([c0, 0n])
      const squared = Fp2.add(Fp2.mul(Fp2.sqr(x), x), N2.CURVE().b)
      if (!Fp2.eql(Fp2.pow(squared, (Fp2.ORDER - 1n) / 2n), Fp2.ONE)) continue
      const outside = N2.fromAffine({ x, y: Fp2.sqrt(squared) })
      expect(errorOf(call("o", vec([good]), vec([n2(outside)])))).toMatch(INVALID)
      break
    }
  })

  it("checks products of pairings, the example of EIP-197 among them", () => {
    const points = [
      "2cf44499d5d27bb186308b7af7af02ac5bc9eeb6a3d147c186b21fb1b76e18da" +
        "2c0f001f52110ccfe69108924926e45f0b0c868df0e7bde1fe16d3242dc715f6",
      "0000000000000000000000000000000000000000000000000000000000000001" +
        "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd45"
    ]
    const twisted = [
      "1fb19bb476f6b9e44e2a32234da8212f61cd63919354bc06aef31e3cfaff3ebc" +
        "22606845ff186793914e03e21df544c34ffe2f2f3504de8a79d9159eca2d98d9" +
        "2bd368e28381e8eccb5fa81fc26cf3f048eea9abfdd85d7ed3ab3698d63e4f90" +
        "2fe02e47887507adf0ff1743cbac6ba291e66f59be6bd763950bb16041a0a85e",
      "1971ff0471b09fa93caaf13cbf443c1aede09cc4328f5a62aad45f40ec133eb4" +
        "091058a3141822985733cbdddfed0fd8d6c104e9e9eff40bf5abfef9ab163bc7" +
        "2a23af9a5ce2ba2796c1f4e453a370eb0af8c212d9dc9acd8fc02c2e907baea2" +
        "23a8eb0b0996252cb548a4487da97b02422ebc0e834613f954de6c7e0afdc1fc"
    ]
    const all = (items: ReadonlyArray<string>): ScVal => vec(items.map((digits) => bytes(hex(digits))))
    expect(value(call("o", all(points), all(twisted)))).toEqual(bool(true))
    expect(value(call("o", all(points), all(twisted.toReversed())))).toEqual(bool(false))
    expect(value(call("o", vec([n1(a), n1(a.negate())]), vec([n2(b), n2(b)])))).toEqual(bool(true))
    expect(value(call("o", vec([n1(N1.ZERO)]), vec([n2(b)])))).toEqual(bool(true))
    expect(errorOf(call("o", vec([]), vec([])))).toMatch(INVALID)
  })
})

describe("scalars", () => {
  it("scalar arithmetic is modulo the group order", () => {
    for (const [names, field] of [
      ["hijkl", bls12_381.fields.Fr],
      ["stuvw", bn254.fields.Fr]
    ] as const) {
      const { ORDER } = field
      const [plus, minus, times, power, inverse] = [...names] as [string, string, string, string, string]
      const of = (...args: readonly [string, ...Array<ScVal>]): bigint => bigOf(value(call(...args)))
      expect(of(plus, scalar(ORDER - 1n), scalar(5n))).toBe(4n)
      expect(of(minus, scalar(1n), scalar(3n))).toBe(ORDER - 2n)
      expect(of(times, scalar(ORDER - 1n), scalar(ORDER - 1n))).toBe(1n)
      expect(of(plus, scalar((1n << 256n) - 1n), scalar(0n))).toBe(((1n << 256n) - 1n) % ORDER)
      expect(of(power, scalar(3n), u64(0n))).toBe(1n)
      expect(of(power, scalar(2n), u64((1n << 64n) - 1n))).toBe(field.pow(2n, (1n << 64n) - 1n))
      expect(of(inverse, scalar(7n))).toBe(field.inv(7n))
      for (const zero of [0n, ORDER]) expect(errorOf(call(inverse, scalar(zero)))).toMatch(INVALID)
      expect(errorOf(call(plus, u32(1), scalar(1n)))).toMatch(/^Error\(Value, UnexpectedType\)/)
    }
  })
})

const row = (items: ReadonlyArray<bigint>): ScVal => vec(items.map(scalar))
const rows = (items: ReadonlyArray<ReadonlyArray<bigint>>): ScVal => vec(items.map(row))
const numbers = (result: ScVal): Array<bigint> => (result.type === 16 ? (result.vec ?? []).map(bigOf) : [])

const circom = grainGenConstants({ Fp: bn254.fields.Fr, t: 3, roundsFull: 8, roundsPartial: 57, sboxPower: 5 })
const sponge = (state: ReadonlyArray<bigint>): Array<ScVal> => [
  row(state),
  sym("BN254"),
  ...[3, 5, 8, 57].map(u32),
  rows(circom.mds),
  rows(circom.roundConstants)
]
// The first numbers of the same generator: three for a full round, one for a partial one.
const second = grainGenConstants({ Fp: bn254.fields.Fr, t: 3, roundsFull: 8, roundsPartial: 56, sboxPower: 5 })
const drawn = second.roundConstants.flat()
const constants2 = Array.from({ length: 64 }, (_, round) => {
  if (round < 4) return drawn.slice(3 * round, 3 * round + 3)
  if (round < 60) return [drawn[12 + round - 4]!, 0n, 0n]
  return drawn.slice(68 + 3 * (round - 60), 71 + 3 * (round - 60))
})
const sponge2 = (state: ReadonlyArray<bigint>): Array<ScVal> => [
  row(state),
  sym("BN254"),
  ...[3, 5, 8, 56].map(u32),
  row([1n, 1n, 2n]),
  rows(constants2)
]

describe("Poseidon", () => {
  it("permutes as circomlib does", () => {
    expect(numbers(value(call("p", ...sponge([0n, 1n, 2n]))))[0]).toBe(
      7_853_200_120_776_062_878_684_798_364_095_072_458_815_029_376_092_732_009_249_414_926_327_459_813_530n
    )
  })

  it("permutes as the reference of Poseidon2 does", () => {
    expect(numbers(value(call("q", ...sponge2([0n, 1n, 2n]))))).toEqual([
      0x0bb61d24daca55eebcb1929a82650f328134334da98ea4f847f760054f4a3033n,
      0x303b6f7c86d043bfcbcc80214f26a30277a15d3f74ca654992defe7ff8d03570n,
      0x1ed25194542b12eef8617361c3ba7c52e660b145994427cc86296242cf766ec8n
    ])
  })

  it("mixes larger states as the matrices of Poseidon2 say", () => {
    const { Fr } = bls12_381.fields
    const four = [
      [5n, 7n, 1n, 3n],
      [4n, 6n, 1n, 1n],
      [1n, 3n, 5n, 7n],
      [1n, 1n, 4n, 6n]
    ]
    for (const size of [4, 8, 24]) {
      const state = Array.from({ length: size }, (_, i) => BigInt(i * i + 3))
      const diagonal = state.map((element) => element + 100n)
      const outer = (from: ReadonlyArray<bigint>): Array<bigint> =>
        from.map((_, i) =>
          from.reduce((sum, element, j) => {
            const factor = four[i % 4]![j % 4]!
            const isOwn = Math.floor(i / 4) === Math.floor(j / 4) && size > 4
            return Fr.add(sum, Fr.mul(isOwn ? 2n * factor : factor, element))
          }, 0n)
        )
      const box = (element: bigint): bigint => Fr.pow(element, 5n)
      const [first, ...others] = outer(state)
      const inner = [box(first! + 9n), ...others]
      const total = inner.reduce((sum, element) => Fr.add(sum, element))
      const mixed = inner.map((element, i) => Fr.add(total, Fr.mul(element, diagonal[i]!)))
      const partial = [row(state), sym("BLS12_381"), ...[size, 5, 0, 1].map(u32), row(diagonal), rows([[9n]])]
      expect(numbers(value(call("q", ...partial)))).toEqual(mixed)
      const full = [
        ...[row(state), sym("BLS12_381"), ...[size, 5, 2, 0].map(u32), row(diagonal)],
        rows([state, diagonal])
      ]
      const round = (from: ReadonlyArray<bigint>, added: ReadonlyArray<bigint>): Array<bigint> =>
        outer(from.map((element, i) => box(Fr.add(element, added[i]!))))
      expect(numbers(value(call("q", ...full)))).toEqual(round(round(outer(state), state), diagonal))
    }
  })

  it("refuses Poseidon parameters of mismatched sizes", () => {
    const changed = (args: Array<ScVal>, at: number, to: ScVal): Array<ScVal> => args.with(at, to)
    for (const [name, good] of [
      ["p", sponge([0n, 1n, 2n])],
      ["q", sponge2([0n, 1n, 2n])]
    ] as const) {
      const bad = [
        changed(good, 0, row([1n, 2n])),
        changed(good, 0, vec([u32(1), u32(2), u32(3)])),
        changed(good, 1, sym("BN256")),
        changed(good, 2, u32(4)),
        changed(good, 3, u32(3)),
        changed(good, 4, u32(7)),
        changed(good, 5, u32(55)),
        changed(good, 6, vec([])),
        changed(good, 7, vec([])),
        changed(good, 7, vec([u32(1)])),
        changed(good, 7, rows(constants2.map(() => [1n])))
      ]
      for (const args of bad) expect(errorOf(call(name, ...args))).toMatch(INVALID)
      expect(errorOf(call(name, ...changed(changed(good, 4, u32(0xffff_fffe)), 5, u32(8))))).toMatch(
        /^Error\(Value, ArithDomain\)/
      )
    }
    expect(errorOf(call("q", row([1n]), sym("BN254"), ...[1, 5, 0, 1].map(u32), row([1n]), rows([[1n]])))).toMatch(
      INVALID
    )
    expect(errorOf(call("q", ...changed(sponge2([0n, 1n, 2n]), 7, rows(constants2.with(10, [])))))).toMatch(
      /^Error\(Object, IndexBounds\)/
    )
  })
})

/** Instructions of one call, without those of getting there. */
const instructions = (name: string, ...args: ReadonlyArray<ScVal>): number => {
  const meter = new InstructionMeter(cpuCosts)
  const vm = new Vm(
    { meter } as unknown as ContractHost,
    new WebAssembly.Global({ value: "i32", mutable: true }),
    undefined
  )
  const words = args.map((arg) => vm.values.word(arg))
  try {
    ;({ ...curveFunctions, ...poseidonFunctions })[`c.${name}`]!(vm, ...words)
  } catch (error) {
    if (!(error instanceof HostError)) throw error
  }
  return meter.instructions
}

describe("what the network charges", () => {
  const large = scalar(1n << 200n)
  const twice = <A>(item: A): Array<A> => [item, item]
  const far = bytes(outside2)
  const content = (point: ScVal): Uint8Array => (point.type === 13 ? point.bytes : new Uint8Array())
  const [off1, off2] = [bytes(content(g1(p)).with(95, 1)), bytes(content(g2(q)).with(191, 1))]
  const a = n1(N1.BASE.multiply(55n))

  it("charges BLS12-381 operations as the network, up to the failure", () => {
    const calls: ReadonlyArray<readonly [number, string, ...Array<ScVal>]> = [
      [734_534, "4", g1(p)],
      [120, "4", flagged(g1(p), 0x80)],
      [4_024, "4", off1],
      [110_748, "5", g1(p), g1(p)],
      [180, "5", flagged(g1(p), 0x40), g1(p)],
      [4_084, "5", off1, g1(p)],
      [8_048, "5", g1(p), off1],
      [3_290_644, "6", g1(p), large],
      [3_290_524, "6", g1(p), scalar(1n)],
      [1_024_407, "8", bytes(new Uint8Array(48))],
      [120, "8", bytes(new Uint8Array(47))],
      [1_153, "8", bytes(new Uint8Array(48).fill(255))],
      [1_067_803, "a", g2(q)],
      [9_981, "a", off2],
      [149_626, "b", g2(q), g2(q)],
      [10_041, "b", off2, g2(q)],
      [9_047_593, "c", g2(q), large],
      [9_047_473, "c", g2(q), scalar(1n)],
      [1_862_398, "e", bytes(new Uint8Array(96))],
      [240, "g", vec([]), vec([])],
      [4_024, "x", g1(p)],
      [9_981, "y", far]
    ]
    for (const [expected, ...args] of calls) expect([args[0], instructions(...args)]).toEqual([args[0], expected])
  })

  it("charges BN254 operations and scalar arithmetic as the network", () => {
    const [x, y] = [scalar(bn254.fields.Fr.ORDER - 3n), scalar(bn254.fields.Fr.ORDER - 5n)]
    const calls: ReadonlyArray<readonly [number, string, ...Array<ScVal>]> = [
      [9_731, "m", a, a],
      [7_691, "m", a, bytes(new Uint8Array(64))],
      [5_651, "m", bytes(new Uint8Array(64)), bytes(new Uint8Array(64))],
      [180, "m", flagged(a, 0x80), a],
      [1_156_555, "n", a, large],
      [1_156_435, "n", a, scalar(2n)],
      [6_113, "s", x, y],
      [6_371, "u", x, large],
      [37_018, "w", x],
      [2_052, "w", scalar(0n)],
      [2_160, "z", a]
    ]
    for (const [expected, ...args] of calls) expect([args[0], instructions(...args)]).toEqual([args[0], expected])
    expect(instructions("k", large, u64(2n)) - instructions("k", large, u64(1n))).toBe(74_558 >> 7)
    expect(instructions("7", vec(twice(g1(p))), vec(twice(large)))).toBeGreaterThan(2_347_584)
  })

  it("charges Poseidon permutations as the network", () => {
    const state = [0n, 1n, 2n]
    // The host's own example has one partial round less than circomlib.
    const [, , , , , , mds, constants] = sponge(state)
    const shorter = vec((constants!.type === 16 ? constants!.vec! : []).slice(1))
    expect(instructions("p", row(state), sym("BN254"), ...[3, 5, 8, 56].map(u32), mds!, shorter)).toBe(1_002_284)
    expect(instructions("q", ...sponge2(state))).toBe(695_617)
  })

  it("ends a call before work beyond its budget", () => {
    const pairs = 60
    const result = call(
      "g",
      vec(Array.from({ length: pairs }, () => g1(p))),
      vec(Array.from({ length: pairs }, () => g2(q)))
    )
    expect(errorOf(result)).toMatch(/^Error\(Budget, ExceededLimit\)/)
  })
})
