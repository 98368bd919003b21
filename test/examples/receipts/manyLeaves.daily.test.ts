// A log of 100,000 leaves: the plugin's proofs against the published checker, which shares no code with it, and the
// auditor's script over logs that were altered, shortened, reordered and forked deep inside.
import { createHash } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { compareStories, openStory } from "../../../examples/receipts/two-stories.mjs"
import { checkConsistency, checkInclusion } from "../../../examples/receipts/verify.mjs"
import { consistencyPath, inclusionPath, type ReadNode, rootOfRange } from "../../../plugins/receipts/log/merkle.ts"
import { did, didDocument, levelsOf, makeKey, methodOf, rootOf, sha, writeLog } from "../../support/receiptLog.ts"

const size = 100_000
const sha256 = (bytes: Uint8Array): Uint8Array => createHash("sha256").update(bytes).digest()
const entryOf = (n: number | string): Buffer => Buffer.concat([Buffer.of(1), sha(`outcome ${n}`)])
const entries = Array.from({ length: size }, (_, n) => entryOf(n))
const levels = levelsOf(entries)
const read: ReadNode = ({ height, index }) => levels[height]![index]!
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")
const tree = (leaves: number) => ({ size: leaves, root: rootOf(levels, leaves).toString("hex") })

/** Reproducible numbers below a bound. */
const picks = (count: number, below: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, n) => sha(`pick ${n} of ${below}`).readUInt32BE() % below)

describe("100,000 leaves", () => {
  it("have the same roots by the plugin and by the definition", () => {
    for (const leaves of [1, 2, 255, 256, 257, 65_536, 65_537, size - 1, size])
      expect(hex(rootOfRange(sha256, read, 0, leaves))).toBe(tree(leaves).root)
  })

  it("are proven to be included, each in its place alone", async () => {
    for (const index of [0, 1, 255, 256, 65_535, 65_536, 99_839, 99_840, size - 1, ...picks(200, size)]) {
      const path = inclusionPath(sha256, read, index, size).map(hex)
      const hash = levels[0]![index]!.toString("hex")
      await checkInclusion(tree(size), index, hash, path)
      const other = (index + 1) % size
      await expect(checkInclusion(tree(size), other, hash, path)).rejects.toThrow()
      await expect(checkInclusion(tree(size), index, levels[0]![other]!.toString("hex"), path)).rejects.toThrow()
      await expect(checkInclusion(tree(size - 1), Math.min(index, size - 2), hash, path)).rejects.toThrow()
    }
  })

  it("continue each of their beginnings, and no other tree", async () => {
    for (const older of [1, 255, 256, 257, 65_536, 99_999, ...picks(100, size - 1).map((n) => n + 1)]) {
      const path = consistencyPath(sha256, read, older, size).map(hex)
      await checkConsistency(tree(older), tree(size), path)
      const forked = { size: older, root: sha(`another of ${older}`).toString("hex") }
      await expect(checkConsistency(forked, tree(size), path)).rejects.toThrow()
      await expect(checkConsistency(tree(older), { ...tree(size), root: forked.root }, path)).rejects.toThrow()
      await expect(checkConsistency({ ...tree(older), size: older + 1 }, tree(size), path)).rejects.toThrow()
    }
  })
})

describe("two downloads of 100,000 leaves", () => {
  const log = makeKey(did, "log")
  const doc = didDocument(methodOf(log))
  let folder = ""
  let logs = 0
  const story = async (leaves: ReadonlyArray<Uint8Array>) => {
    const place = join(folder, String(logs++))
    await writeLog(place, log, leaves)
    return openStory(place, doc)
  }
  let honest: Awaited<ReturnType<typeof story>>
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "many-leaves-"))
    honest = await story(entries)
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it.each([
    ["altered", 77_777, () => entries.with(77_777, entryOf("another"))],
    ["removed", 40_000, () => entries.toSpliced(40_000, 1)],
    ["reordered", 65_535, () => entries.with(65_535, entries[65_536]!).with(65_536, entries[65_535]!)],
    ["forked", 99_000, () => [...entries.slice(0, 99_000), ...picks(1_500, size).map((n) => entryOf(`fork ${n}`))]]
  ] as const)(
    "where leaves were %s are two stories from leaf %i on",
    async (_, at, change) => {
      expect((await compareStories(honest, await story(change())))?.index).toBe(at)
    },
    60_000
  )
})
