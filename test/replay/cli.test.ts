// The replay as a command: what it says without streams, and that it fails when a transaction comes out otherwise.
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

/** The stream with one stroop more in the fee of its last transaction. */
const withOtherFee = (bytes: Buffer): Buffer => {
  const all = frames(bytes)
  const at = all.findLastIndex((frame) => {
    const meta = xdr.LedgerCloseMeta.schema.decode(new Uint8Array(frame.subarray(4)))
    return meta.v === 2 && meta.v2.txProcessing.length > 0
  })
  const meta = xdr.LedgerCloseMeta.schema.decode(new Uint8Array(all[at]!.subarray(4)))
  if (meta.v !== 2) throw new Error("no stream of this kind")
  const processing = meta.v2.txProcessing.map((tx, i, { length }) =>
    i < length - 1
      ? tx
      : {
          ...tx,
          result: { ...tx.result, result: { ...tx.result.result, feeCharged: tx.result.result.feeCharged + 1n } }
        }
  )
  const body = Buffer.from(xdr.LedgerCloseMeta.schema.encode({ ...meta, v2: { ...meta.v2, txProcessing: processing } }))
  const mark = Buffer.alloc(4)
  mark.writeUInt32BE((body.length | 0x80000000) >>> 0)
  all[at] = Buffer.concat([mark, body])
  return Buffer.concat(all)
}

describe("npm run replay", () => {
  it("says that it skips where the folder is absent or holds no streams, and succeeds", () => {
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
  })

  it.skipIf(streams === undefined)("reads the streams from an archive as well", () => {
    const packed = join(folder, "packed")
    mkdirSync(packed)
    execFileSync("tar", ["-czf", join(packed, "streams.tar.gz"), "-C", join(folder, "good"), "."])
    expect(replay(packed).lines.at(-1)).toMatch(/^total: 1 streams, .* 0 different/)
  })
})
