// Imports that the network offers to contracts: each host function's number of parameters, and its first protocol. All
// parameters and the result are 64-bit words. The keys are the short names that contracts use.
import { HostError } from "../host/HostError.ts"
import { Malformed } from "./BinaryReader.ts"

interface Signature {
  readonly parameters: number
  readonly since: number
}

/** By module: the names in order, each with its number of parameters, and the protocol if it is not the first. */
const offered: Readonly<Record<string, string>> = {
  x: "_4 02 12 20 30 40 51 60 70 80",
  i:
    "_1 01 11 21 32 41 51 62 71 81 94 a1 b1 c1 d1 e1 f1 g4 h1 i1 j1 k1 l1 m1 n2 o2 p2 q2 r2 s2 t2 u2 v2 w2 x2 y2 z2 " +
    "A2 B2 C2 D1 E1 F1 G1 H2@26 I2@26 J2@26 K2@26 L2@26 M2@26 N2@26 O2@26",
  m: "_0 03 12 22 31 42 52 62 71 81 93 a4 b3@28 c4@28",
  v: "_0 03 12 22 31 42 51 62 71 81 91 a3 b2 c3 d2 e2 f2 g2 h3",
  l: "_3 02 12 22 33 41 51 61 74 82 93 a2 b1 c3@21 d3@21 e4@22 f5@26 g5@26 h1@28 i5@28 j2@28",
  d: "_3 03",
  b: "_1 01 14 24 32 40 53 62 72 81 92 a1 b1 c1 d3 e2 f3 g4 h4 i2 j2 k1 l1 m3 n1@23 o1@23",
  c:
    "_1 03 11 23 33@21 41@22 52@22 62@22 72@22 81@22 92@22 a1@22 b2@22 c2@22 d2@22 e1@22 f2@22 g2@22 h2@22 i2@22 " +
    "j2@22 k2@22 l1@22 m2@25 n2@25 o2@25 p8@25 q8@25 r2@26 s2@26 t2@26 u2@26 v2@26 w1@26 x1@26 y1@26 z1@26",
  a: "_2 01 11 21 31 41@23 51@23 61@23 71@26 81@26 90@27 a1@27",
  p: "_1 01 12 21"
}

const FIRST_PROTOCOL = 20

const signatures: ReadonlyMap<string, Signature> = new Map(
  Object.entries(offered).flatMap(([module, names]) =>
    names
      .split(" ")
      .map((item): readonly [string, Signature] => [
        `${module}.${item[0]}`,
        { parameters: Number(item[1]), since: Number(item.slice(3) || FIRST_PROTOCOL) }
      ])
  )
)

export interface Import {
  readonly module: string
  readonly name: string
  readonly parameters: ReadonlyArray<number>
  readonly results: ReadonlyArray<number>
}

const WORD = 0x7e

/** Refuses a module with an import that the network does not offer, or offers in another form. */
export const checkImports = (imports: ReadonlyArray<Import>): void => {
  for (const { module, name, parameters, results } of imports) {
    const signature = signatures.get(`${module}.${name}`)
    if (signature === undefined) throw new Malformed("an unknown function is imported")
    const isWord = (type: number): boolean => type === WORD
    const fits = parameters.length === signature.parameters && parameters.every(isWord)
    if (!fits || results.length !== 1 || !results.every(isWord))
      throw new Malformed(`${module}.${name} is imported with another signature`)
  }
}

/** Refuses a module that imports a function of a later protocol than its own, or than the ledger's. */
export const checkProtocol = (imports: ReadonlyArray<Import>, protocol: number): void => {
  for (const { module, name } of imports) {
    if ((signatures.get(`${module}.${name}`)?.since ?? Infinity) > protocol) {
      const message = "contract calls a host function not yet supported by current protocol"
      throw HostError.of("WasmVm", "InvalidAction", message)
    }
  }
}
