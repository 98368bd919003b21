// The replay as a command: its output without streams, and its failure if a transaction has a different result.
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { xdr } from "@stellar/stellar-sdk/base"
import { findStreams, sharedStreams } from "./streams.ts"

const program = new URL("replay.ts", import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), "tollkeeper-replay-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const replay = (data: string) => {
  const { status, stdout } = spawnSync(process.execPath, [program, "--data", data], { encoding: "utf8" })
  return { status, lines: stdout.trimEnd().split("\n") }
}

const frames = (bytes: Buffer): Array<Buffer> => {
  const result: Array<Buffer> = []
  for (let at = 0; at < bytes.length;) {
    const end = at + 4 + (bytes.readUInt32BE(at) & 0x7fffffff)
    result.push(bytes.subarray(at, end))
    at = end
  }
  return result
}

type Meta = Extract<Parameters<typeof xdr.LedgerCloseMeta.schema.encode>[0], { v: 2 }>["v2"]

/** The stream with a change to its last ledger that has transactions. */
const reported = (bytes: Buffer, change: (meta: Meta) => Meta): Buffer => {
  const all = frames(bytes)
  const at = all.findLastIndex((frame) => {
    const meta = xdr.LedgerCloseMeta.schema.decode(new Uint8Array(frame.subarray(4)))
    return meta.v === 2 && meta.v2.txProcessing.length > 0
  })
  const meta = xdr.LedgerCloseMeta.schema.decode(new Uint8Array(all[at]!.subarray(4)))
  if (meta.v !== 2) throw new Error("no stream of this kind")
  const body = Buffer.from(xdr.LedgerCloseMeta.schema.encode({ ...meta, v2: change(meta.v2) }))
  const mark = Buffer.alloc(4)
  mark.writeUInt32BE((body.length | 0x80000000) >>> 0)
  all[at] = Buffer.concat([mark, body])
  return Buffer.concat(all)
}

/** The stream with one stroop more in the fee of its last transaction. */
const withOtherFee = (bytes: Buffer): Buffer =>
  reported(bytes, (meta) => ({
    ...meta,
    txProcessing: meta.txProcessing.map((tx, i, { length }) =>
      i < length - 1
        ? tx
        : {
            ...tx,
            result: { ...tx.result, result: { ...tx.result.result, feeCharged: tx.result.result.feeCharged + 1n } }
          }
    )
  }))

describe("npm run replay", () => {
  it("succeeds and reports a skip where the folder has no streams", () => {
    const nothing = join(folder, "nothing")
    expect(replay(nothing)).toEqual({ status: 0, lines: [`replay skipped: no ledger streams in ${nothing}`] })
    expect(replay(folder)).toEqual({ status: 0, lines: [`replay skipped: no ledger streams in ${folder}`] })
  })

  const streams = findStreams(sharedStreams)
  it.skipIf(streams === undefined)("ends with the totals, and fails when a supported transaction differs", () => {
    const file = streams!.find(({ family }) => family === "Trustline_stellar_asset_contract")!
    const good = join(folder, "good", file.suite)
    const bad = join(folder, "bad", file.suite)
    for (const path of [good, bad]) mkdirSync(path, { recursive: true })
    const bytes = readFileSync(file.path)
    writeFileSync(join(good, "a.xdr"), bytes)
    writeFileSync(join(bad, "a.xdr"), withOtherFee(bytes))
    const right = replay(join(folder, "good"))
    expect([right.status, right.lines.at(-1)]).toEqual([
      0,
      expect.stringMatching(
        /^total: 1 streams, (\d+) transactions, \1 executed, \1 identical \(100\.00 %\).* 0 different, 0 unsupported$/
      )
    ])
    const wrong = replay(join(folder, "bad"))
    expect([wrong.status, wrong.lines.at(-1)]).toEqual([1, expect.stringMatching(/ 1 different, 0 unsupported$/)])
    expect(wrong.lines.join("\n")).toMatch(/fee \d+ instead of \d+/)
    expect(wrong.lines.join("\n")).toMatch(/another result hash/)
  })

  it.skipIf(streams === undefined)(
    "fails when the meta of a whole ledger differs",
    () => {
      const file = streams!.find(({ family }) => family === "Trustline_stellar_asset_contract")!
      const bytes = readFileSync(file.path)
      const cases: ReadonlyArray<readonly [RegExp, (meta: Meta) => Meta]> = [
        [/state of 7 bytes instead of 0/, (meta) => ({ ...meta, totalByteSizeOfLiveSorobanState: 7n })],
        [
          /evicts a time to live twice/,
          (meta) => ({ ...meta, evictedKeys: [{ type: 9, ttl: { keyHash: new Uint8Array(32) } }] })
        ],
        [/an envelope without a result/, (meta) => ({ ...meta, txProcessing: meta.txProcessing.slice(0, -1) })],
        [
          /another hash of the transaction set/,
          (meta) => ({
            ...meta,
            txSet: { ...meta.txSet, v1TxSet: { ...meta.txSet.v1TxSet, previousLedgerHash: new Uint8Array(32) } }
          })
        ]
      ]
      for (const [i, [what, change]] of cases.entries()) {
        const path = join(folder, `whole-${i}`, file.suite)
        mkdirSync(path, { recursive: true })
        writeFileSync(join(path, "a.xdr"), reported(bytes, change))
        const { status, lines } = replay(join(folder, `whole-${i}`))
        expect([status, lines.join("\n")]).toEqual([1, expect.stringMatching(what)])
      }
    },
    240_000
  )

  it.skipIf(streams === undefined)("reads the streams from an archive as well", () => {
    const packed = join(folder, "packed")
    mkdirSync(packed)
    execFileSync("tar", ["-czf", join(packed, "streams.tar.gz"), "-C", join(folder, "good"), "."])
    expect(replay(packed).lines.at(-1)).toMatch(/^total: 1 streams, .* 0 different/)
  })
})
