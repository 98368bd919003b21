// The published checker against published vectors (RFC 8785, RFC 6962's reference tree, RFC 8037's key), against every
// index and size of small trees, and against a forger's attempts. We have seen each refusal succeed without its check.
import { createHmac, generateKeyPairSync, sign as signWith } from "node:crypto"
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { checkKept, readKept } from "../../../examples/receipts/check.mjs"
import {
  canonical,
  checkConsistency,
  checkInclusion,
  leafHash,
  openCheckpoint,
  openReceipt,
  verify
} from "../../../examples/receipts/verify.mjs"
import {
  checkpointOf,
  claimsOf,
  did,
  didDocument,
  jwsOf,
  levelsOf,
  makeKey,
  methodOf,
  outcomeOf,
  noteOf,
  receiptOf,
  rootOf,
  sha
} from "../../support/receiptLog.ts"
import { makeForgeries } from "../../support/receiptForgeries.ts"

const b64u = (value: string | Uint8Array): string => Buffer.from(value).toString("base64url")

describe("RFC 8785", () => {
  it("has the sample of section 3.2.4", () => {
    const sample = {
      numbers: [Number("333333333.33333329"), 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
      string: "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"/",
      literals: [null, true, false]
    }
    expect(canonical(sample)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
  })

  it("sorts names by UTF-16 code units (section 3.2.3)", () => {
    const names = ["\u20ac", "\r", "\ufb33", "1", "\ud83d\ude00", "\u0080", "\u00f6"]
    const sorted = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\ud83d\ude00", "\ufb33"]
    const value = Object.fromEntries(names.map((name) => [name, 0]))
    expect(canonical(value)).toBe(`{${sorted.map((name) => `${JSON.stringify(name)}:0`).join()}}`)
    expect(canonical({ "10": 1, "9": 2, a: { c: 1, b: 2 } })).toBe('{"10":1,"9":2,"a":{"b":2,"c":1}}')
  })

  it.each([
    ["0000000000000000", "0"],
    ["8000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["44b52d02c7e14af6", "1e+23"],
    ["444b1ae4d6e2ef4e", "999999999999999700000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555556", "333333333.3333334"],
    ["41b3de4355555557", "333333333.33333343"]
  ])("writes the number of the bits %s as %s (appendix B)", (bits, text) => {
    expect(canonical(Buffer.from(bits, "hex").readDoubleBE())).toBe(text)
  })

  it("refuses a lone surrogate", () => {
    expect(() => canonical({ a: "\ud800" })).toThrow("lone surrogate")
  })
})

/** The reference tree of RFC 6962's implementations: eight leaves, and the roots of the first n. */
const leaves = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"].map(
  (hex) => Buffer.from(hex, "hex")
)
const roots = [
  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
]
const tree = (size: number) => ({ size, root: roots[size - 1]! })

describe("RFC 9162", () => {
  it("has the published roots in the tests' own tree", () => {
    const levels = levelsOf(leaves)
    expect(roots.map((_, at) => rootOf(levels, at + 1).toString("hex"))).toEqual(roots)
  })

  it.each([
    [0, 1, []],
    [
      0,
      8,
      [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"
      ]
    ],
    [
      5,
      8,
      [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"
      ]
    ],
    [2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]],
    [
      1,
      5,
      [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"
      ]
    ]
  ])(
    "accepts the published path of leaf %i in the tree of %i, and none that differs from it",
    async (at, size, path) => {
      const hash = await leafHash(leaves[at]!)
      await checkInclusion(tree(size), at, hash, path)
      await expect(checkInclusion(tree(size), at, hash, [...path, roots[0]!])).rejects.toThrow()
      await expect(checkInclusion(tree(size), at + 8, hash, path)).rejects.toThrow()
      await expect(checkInclusion(tree(size), at, roots[4]!, path)).rejects.toThrow()
      if (size > 1) {
        await expect(checkInclusion(tree(size), at ^ 1, hash, path)).rejects.toThrow()
        await expect(checkInclusion(tree(size), at, hash, path.slice(1))).rejects.toThrow()
        await expect(checkInclusion(tree(size), at, hash, path.slice(0, -1))).rejects.toThrow()
      }
    }
  )

  it.each([
    [1, 1, []],
    [
      1,
      8,
      [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"
      ]
    ],
    [
      6,
      8,
      [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"
      ]
    ],
    [
      2,
      5,
      [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"
      ]
    ]
  ])(
    "accepts the published proof that %i leaves are continued by %i, and none that differs",
    async (older, newer, path) => {
      await checkConsistency(tree(older), tree(newer), path)
      const another = { size: older, root: roots[older % 8]! }
      await expect(checkConsistency(another, tree(newer), path)).rejects.toThrow()
      await expect(checkConsistency(tree(older), tree(newer), [...path, roots[0]!])).rejects.toThrow()
      await expect(checkConsistency(tree(newer + 1 > 8 ? 7 : newer + 1), tree(older), path)).rejects.toThrow()
      if (path.length > 0) {
        await expect(checkConsistency(tree(older), tree(newer), path.slice(1))).rejects.toThrow()
        await expect(checkConsistency(tree(older), tree(newer), path.toReversed())).rejects.toThrow()
      }
    }
  )
})

/** An answer of `GET /receipts/:hash?proof=1` for the third of `entries`, with a tree over all of them. */
const answerOf = (key: ReturnType<typeof makeKey>, log: ReturnType<typeof makeKey>, change: object = {}) => {
  const receipt = receiptOf(key, 2)
  const mine = outcomeOf(receipt, 2, change)
  const entries = [0, 1, 3, 4].map((n) => outcomeOf(receiptOf(key, n), n).entry).toSpliced(2, 0, mine.entry)
  const levels = levelsOf(entries)
  const hashes = [levels[0]![3]!, levels[1]![0]!, levels[0]![4]!].map((hash) => hash.toString("hex"))
  const checkpoint = checkpointOf(log, entries.length, rootOf(levels, entries.length))
  const { record, salt } = mine
  return { receipt, outcomes: [{ record, salt, proof: { index: 2, size: 5, hashes, checkpoint } }] }
}

describe("a receipt", () => {
  const [key, log, other] = [makeKey(did, "receipt"), makeKey(did, "log"), makeKey(did, "receipt")]
  const doc = didDocument(methodOf(key), methodOf(log))

  it("gives its claims with its proof, to Node, Deno and browsers alike", async () => {
    expect(await verify(answerOf(key, log), doc)).toEqual(claimsOf(2))
  })

  it("is refused with a swapped amount, payee or network, though its signature is copied", async () => {
    const [header, , signature] = receiptOf(key, 2).split(".")
    for (const change of [{ amount: "1" }, { payTo: "GTHIEF" }, { network: "stellar:pubnet" }]) {
      const jws = `${header}.${b64u(canonical({ ...claimsOf(2), ...change }))}.${signature}`
      await expect(openReceipt(jws, doc)).rejects.toThrow("not signed")
    }
  })

  it("is refused under a key that did.json does not have, or has for the log", async () => {
    await expect(openReceipt(receiptOf(other, 2), doc)).rejects.toThrow("not signed")
    await expect(
      openReceipt(jwsOf(other, canonical(claimsOf(2)), { alg: "EdDSA", kid: key.kid }), doc)
    ).rejects.toThrow()
    await expect(openReceipt(receiptOf(log, 2), doc)).rejects.toThrow("not signed")
    const foreign = { alg: "EdDSA", kid: key.kid.replace("pay.example", "evil.example") }
    await expect(openReceipt(jwsOf(key, canonical(claimsOf(2)), foreign), doc)).rejects.toThrow("not signed")
  })

  it("is refused with the algorithms none, HS256 over the public key, and ES256", async () => {
    const payload = b64u(canonical(claimsOf(2)))
    const signedBy = (alg: string, make: (text: string) => string | Uint8Array) => {
      const text = `${b64u(JSON.stringify({ alg, kid: key.kid, typ: "tollkeeper-receipt+jws" }))}.${payload}`
      return `${text}.${b64u(make(text))}`
    }
    const curve = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey
    const forged = [
      signedBy("none", () => ""),
      signedBy("HS256", (text) => createHmac("sha256", key.publicKey).update(text).digest()),
      signedBy("ES256", (text) => signWith("sha256", Buffer.from(text), { key: curve, dsaEncoding: "ieee-p1363" })),
      // A valid signature with another algorithm's name.
      signedBy("none", (text) => signWith(null, Buffer.from(text), key.privateKey)),
      signedBy("HS256", (text) => signWith(null, Buffer.from(text), key.privateKey))
    ]
    for (const jws of forged) await expect(openReceipt(jws, doc)).rejects.toThrow("not signed")
  })

  it("is refused in JSON that is not canonical, though it is signed", async () => {
    const text = canonical(claimsOf(2))
    const texts = [
      text.replace("{", "{ "),
      text.replace('"amount":"10000",', "").replace("}", ',"amount":"10000"}'),
      text.replace('"amount"', '"amount":"1","amount"'),
      text.replace('"v":1', '"v":1.0'),
      text.replace("GSELLER", "\\u0047SELLER"),
      `\ufeff${text}`
    ]
    for (const one of texts) await expect(openReceipt(jwsOf(key, one), doc)).rejects.toThrow("not canonical")
    const invalid = Buffer.from(text.replace("GSELLER", "G\u0000"))
    invalid[invalid.indexOf(0)] = 0xff
    await expect(openReceipt(jwsOf(key, invalid as never), doc)).rejects.toThrow()
  })

  it("is refused with another issuer in its claims, and with a fourth part", async () => {
    const claims = canonical({ ...claimsOf(2), iss: "did:web:evil.example" })
    await expect(openReceipt(jwsOf(key, claims), doc)).rejects.toThrow("not canonical")
    await expect(openReceipt(`${receiptOf(key, 2)}.`, doc)).rejects.toThrow("not signed")
  })

  it("proves nothing of another payment, or without its outcome", async () => {
    const [mine, another] = [answerOf(key, log), receiptOf(key, 3)]
    await expect(verify({ ...mine, receipt: another }, doc)).rejects.toThrow("no proof")
    await expect(verify({ ...mine, outcomes: [] }, doc)).rejects.toThrow("no proof")
  })

  it("is bound by what its leaf commits to, and by nothing beside its record", async () => {
    // A forged receipt with another's leaf, which is in the log and was recorded during the key's validity.
    const forged = jwsOf(key, canonical({ ...claimsOf(2), transaction: "ab".repeat(32), amount: "999999" }))
    const named = `sha256:${sha(forged).toString("hex")}`
    const [outcome] = answerOf(key, log).outcomes
    const beside = [
      { ...outcome!, receipt: named },
      { ...outcome!, receipt: named, at: 1_790_000_000_000 },
      { ...outcome!, record: outcome!.record.replace(/"receipt":"[^"]+"/, `"receipt":"${named}"`) }
    ]
    for (const one of beside) await expect(verify({ receipt: forged, outcomes: [one] }, doc)).rejects.toThrow()
    const { outcomes, receipt } = answerOf(key, log)
    const retired = didDocument(methodOf(key, 0, 1_790_000_001), methodOf(log))
    const dated = { receipt, outcomes: [{ ...outcomes[0]!, at: 1_790_000_000_000 }] }
    await expect(verify(dated, retired)).rejects.toThrow("not in force")
  })

  it("is refused where its leaf commits to a record that readers read differently", async () => {
    const receipt = receiptOf(key, 2)
    const { record, salt } = outcomeOf(receipt, 2)
    const twice = record.replace('"outcome":"settled"', '"outcome":"failed","outcome":"settled"')
    const entry = Buffer.concat([Buffer.of(1), sha(Buffer.from(salt, "base64url"), twice)])
    const checkpoint = checkpointOf(log, 1, rootOf(levelsOf([entry]), 1))
    const outcomes = [{ record: twice, salt, proof: { index: 0, size: 1, hashes: [], checkpoint } }]
    await expect(verify({ receipt, outcomes }, doc)).rejects.toThrow("no such leaf")
  })

  it("is refused where the leaf, its salt, the path or the checkpoint was changed", async () => {
    const { outcomes, receipt } = answerOf(key, log)
    const [outcome] = outcomes
    const { proof } = outcome!
    const changed = [
      { ...outcome!, record: outcome!.record.replace('"fee":"100"', '"fee":"101"') },
      { ...outcome!, salt: b64u(new Uint8Array(32)) },
      { ...outcome!, proof: { ...proof, index: 3 } },
      { ...outcome!, proof: { ...proof, hashes: proof.hashes.toReversed() } },
      { ...outcome!, proof: { ...proof, checkpoint: proof.checkpoint.replace("\n5\n", "\n6\n") } },
      { ...outcome!, proof: { ...proof, checkpoint: checkpointOf(key, 5, Buffer.alloc(32)) } }
    ]
    for (const one of changed) await expect(verify({ receipt, outcomes: [one] }, doc)).rejects.toThrow()
  })

  it("is refused under a retired key once its time is over, and holds within it", async () => {
    const at = 1_790_000_002
    const retired = (from: number, until: number) => didDocument(methodOf(key, from, until), methodOf(log))
    expect(await verify(answerOf(key, log), retired(0, at))).toEqual(claimsOf(2))
    await expect(verify(answerOf(key, log), retired(0, at - 1))).rejects.toThrow("not in force")
    await expect(verify(answerOf(key, log), retired(at + 1, at + 9))).rejects.toThrow("not in force")
  })
})

describe("what a verifier believes", () => {
  const { forgeries, passing } = makeForgeries()

  it.each(passing)("holds with $kind", async ({ answer, did: document }) => {
    expect((await verify(answer, document)).amount).toBe("10000")
    expect((await checkKept(readKept(JSON.stringify(answer)), document)).claims.amount).toBe("10000")
  })

  it.each(forgeries)("is refused with $kind", async ({ answer, did: document }) => {
    await expect(verify(answer, document)).rejects.toThrow()
    await expect(checkKept(readKept(JSON.stringify(answer)), document)).rejects.toThrow()
  })
})

describe("a checkpoint", () => {
  const [key, log, witness] = [makeKey(did, "receipt"), makeKey(did, "log"), makeKey(did, "log")]
  const doc = didDocument(methodOf(key), methodOf(log))
  const root = Buffer.alloc(32, 7)

  it("is read when a log key signed it that is in force then", async () => {
    const rotated = didDocument(methodOf(log, 0, 500), methodOf(witness, 500))
    const [former, current] = [checkpointOf(log, 5, root), checkpointOf(witness, 5, root)]
    expect((await openCheckpoint(current, rotated)).size).toBe(5)
    expect((await openCheckpoint(former, rotated, 499)).key.id).toBe(log.kid)
    expect((await openCheckpoint(former, rotated, NaN)).size).toBe(5)
    await expect(openCheckpoint(former, rotated)).rejects.toThrow("a retired key of the log")
    await expect(openCheckpoint(former, rotated, 500)).rejects.toThrow("a retired key of the log")
    await expect(openCheckpoint(current, rotated, 400)).rejects.toThrow("a retired key of the log")
    // The line of the key in force counts, even with a line of a retired key.
    const both = former + current.split("\n\n")[1]!
    expect((await openCheckpoint(both, rotated)).key.id).toBe(witness.kid)
  })

  it("is refused with a witness's line alone, a receipt key's, another log's, or a changed size", async () => {
    const good = checkpointOf(log, 5, root)
    const notes = [
      checkpointOf(witness, 5, root, "pay.example/log", "witness.example"),
      checkpointOf(log, 5, root, "pay.example/log", "witness.example"),
      checkpointOf(witness, 5, root),
      checkpointOf(key, 5, root),
      good.replace("\n5\n", "\n7\n"),
      good.replace("pay.example/log\n5", "evil.example/log\n5"),
      good.split("\n\n")[0]!
    ]
    for (const note of notes) await expect(openCheckpoint(note, doc)).rejects.toThrow("not signed")
  })

  it("is refused with a line that was not signed, of another host, or with a size in another form", async () => {
    const good = checkpointOf(log, 5, root)
    const signedAs = (size: string) => noteOf(log, `pay.example/log\n${size}\n${root.toString("base64")}\n`)
    expect((await openCheckpoint(signedAs("5"), doc)).size).toBe(5)
    const notes = [
      good.replace("\n\n", "\nsize 7\n\n"),
      good.replace("\n\n", "\nsize 7\n"),
      checkpointOf(log, 5, root, "evil.example/log"),
      ...["0x5", "5e0", "05", " 5", "-5", "5.0"].map(signedAs)
    ]
    for (const note of notes) await expect(openCheckpoint(note, doc)).rejects.toThrow("not signed")
    // An extension line is signed too.
    const extended = noteOf(log, `pay.example/log\n5\n${root.toString("base64")}\nextension\n`)
    expect((await openCheckpoint(extended, doc)).size).toBe(5)
    await expect(openCheckpoint(extended.replace("\nextension", "\nanother"), doc)).rejects.toThrow("not signed")
  })
})

it("is one file of at most 155 lines, on Web Crypto alone", () => {
  const text = readFileSync(new URL("../../../examples/receipts/verify.mjs", import.meta.url), "utf8")
  expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(155)
  expect([...text.matchAll(/^import |require\(/gm)]).toEqual([])
})
