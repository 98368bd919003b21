// The log over several tiles, read only through its public routes and recomputed; and its behavior when its database
// loses published entries.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer } from "effect"
import { Buffer } from "node:buffer"
import { createHash } from "node:crypto"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { freePort } from "../../support/freePort.ts"
import { receiptSecrets } from "./secrets.ts"
import { startWitness } from "./startWitness.ts"
import { outcomeLeaf, readCheckpoint, rootOf } from "./checkReceipt.ts"

const sha256 = (...parts: ReadonlyArray<Uint8Array>) => createHash("sha256").update(Buffer.concat(parts)).digest()

/** Root of leaves' hashes (RFC 6962, section 2.1). */
const rootOfLeaves = (leaves: ReadonlyArray<Uint8Array>): Buffer => {
  if (leaves.length === 1) return Buffer.from(leaves[0]!)
  let k = 1
  while (k * 2 < leaves.length) k *= 2
  return sha256(Uint8Array.of(1), rootOfLeaves(leaves.slice(0, k)), rootOfLeaves(leaves.slice(k)))
}

const bytesAt = (facilitator: Facilitator, path: string) =>
  Effect.promise(async () => {
    const response = await fetch(`${facilitator.url}${path}`)
    expect(response.status).toBe(200)
    return Buffer.from(await response.arrayBuffer())
  })

/** Paths of the tiles of a level with `count` hashes. */
const tilePaths = (count: number): ReadonlyArray<string> =>
  Array.from({ length: Math.ceil(count / 256) }, (_, i) => {
    const width = Math.min(256, count - i * 256)
    return `${String(i).padStart(3, "0")}${width === 256 ? "" : `.p/${width}`}`
  })

/** Inserts operators' outcomes as facts; the hash of number `i` is its hex, padded. */
const publishFailures = (facilitator: Facilitator, from: number, to: number) =>
  facilitator.publishedBy(facilitator.sql`insert into kernel_facts (type, version, subject, principal, data)
    select 'settlement.failed', 1, gen_random_uuid()::text, 'anonymous', jsonb_build_object(
      'transaction', lpad(to_hex(i), 64, '0'), 'moved', null, 'feeChargedStroops', '100', 'ledger', null,
      'reason', 'settle_ledger_transaction_failed', 'by', 'operator')
    from generate_series(${from}::int, ${to}::int) i`)

const hashOf = (i: number) => i.toString(16).padStart(64, "0")

const proven = (facilitator: Facilitator, i: number) =>
  eventually(
    facilitator.ask(`/receipts/${hashOf(i)}?proof=1`),
    ({ json, status }) => status === 200 && json.outcomes[0].proof !== null
  )

describe.each(databaseKinds)("the log of receipts on %s", (kind) => {
  it.live(
    "is read by its tiles, and begins an epoch where it would go back",
    () =>
      Effect.gen(function* () {
        const port = yield* Effect.promise(freePort)
        const witness = yield* startWitness(port)
        const facilitator = yield* startFacilitator({
          database: kind,
          channels: 1,
          set: ["plugins=[ledger-local,x402-exact,receipts]", "receipts.host=pay.example", witness.setting]
        })
        const epochs = Effect.map(facilitator.ask("/log/epochs"), ({ json }) => json.epochs)
        witness.trust(facilitator.url)
        // The examples' witness cosigns, and then cosigns a checkpoint that continues it.
        const isCosigned = (size: number) =>
          eventually(
            facilitator.ask("/log/checkpoint"),
            ({ text }) => text.includes(`\n${size}\n`) && text.includes(`\n— ${witness.name} `)
          )
        yield* publishFailures(facilitator, 1, 300)
        yield* isCosigned(302)
        yield* publishFailures(facilitator, 301, 600)
        yield* isCosigned(602)
        const shown = yield* proven(facilitator, 600)
        // The first two leaves are keys.
        const [{ proof, record, salt }] = shown.json.outcomes
        expect(proof).toMatchObject({ epoch: 1, index: 601, size: 602 })
        expect(JSON.parse(record)).toMatchObject({ outcome: "failed", by: "operator", transaction: hashOf(600) })
        expect(shown.json.receipt).toBeNull()
        const [{ keys }] = yield* epochs
        const checkpoint = readCheckpoint(proof.checkpoint, keys[0])
        expect(rootOf(outcomeLeaf(record, salt), proof.hashes, 601, 602)).toBe(checkpoint.root)

        // Reads every leaf from its tile, and every entry from its bundle.
        const hashes: Array<Buffer> = []
        const entries: Array<Buffer> = []
        for (const path of tilePaths(602)) {
          const tile = yield* bytesAt(facilitator, `/log/tile/0/${path}`)
          for (let at = 0; at < tile.length; at += 32) hashes.push(tile.subarray(at, at + 32))
          const bundle = yield* bytesAt(facilitator, `/log/tile/entries/${path}`)
          for (let at = 0; at < bundle.length; at += 2 + bundle.readUInt16BE(at))
            entries.push(bundle.subarray(at + 2, at + 2 + bundle.readUInt16BE(at)))
        }
        expect(entries.map((entry) => sha256(Uint8Array.of(0), entry))).toEqual(hashes)
        expect(rootOfLeaves(hashes).toString("hex")).toBe(checkpoint.root)
        const upper = yield* bytesAt(facilitator, "/log/tile/1/000.p/2")
        expect(upper).toEqual(Buffer.concat([rootOfLeaves(hashes.slice(0, 256)), rootOfLeaves(hashes.slice(256, 512))]))
        expect(entries.slice(0, 2).map((entry) => JSON.parse(entry.subarray(1).toString()).event)).toEqual([
          "announced",
          "announced"
        ])

        // The database loses the last hundred entries and every checkpoint that covers them.
        yield* facilitator.sql`with lost as (delete from receipts_leaves where index >= 502),
          nodes as (delete from receipts_nodes where level = 1 and index = 1),
          checkpoints as (delete from receipts_checkpoints where size > 502)
          update receipts_epochs set size = 502`
        yield* publishFailures(facilitator, 1_001, 1_001)
        const next = (yield* proven(facilitator, 1_001)).json.outcomes[0]
        // An epoch's name is unpredictable.
        expect(next.proof.origin).toMatch(/^pay\.example\/log\/[0-9a-f]{16}$/)
        expect(next.proof.epoch).toBe(2)
        const place = `/${next.proof.origin.replace("pay.example/", "")}`
        const [former, current] = yield* epochs
        expect(former).toMatchObject({ epoch: 1, size: 502, reason: null, statement: null, keyEntries: [0, 1] })
        expect(current).toMatchObject({ epoch: 2, reason: "the database lost entries that were published" })
        const { root, size } = readCheckpoint(next.proof.checkpoint, current.keys[0])
        expect(rootOf(outcomeLeaf(next.record, next.salt), next.proof.hashes, next.proof.index, size)).toBe(root)
        // The first entry and the signed statement name the previously published log.
        const [first] = tilePaths(size)
        const bundle = yield* bytesAt(facilitator, `${place}/tile/entries/${first}`)
        const entry = bundle.subarray(2, 2 + bundle.readUInt16BE(0))
        expect(entry[0]).toBe(3)
        const previous = {
          origin: "pay.example/log",
          size: 602,
          root: Buffer.from(checkpoint.root, "hex").toString("base64")
        }
        expect(JSON.parse(entry.subarray(1).toString())).toMatchObject({ epoch: 2, previous })
        expect(current.statement).toContain(
          `tollkeeper-log-epoch\n${next.proof.origin}\npay.example/log\n602\n${previous.root}\n\n— ${next.proof.origin}`
        )
        // The former epoch keeps its URLs, and has a checkpoint under the key in force.
        yield* facilitator.sql`update receipts_checkpoints set note = 'former', signed_at = '1969-01-01'
          where epoch = 1`
        yield* publishFailures(facilitator, 1_002, 1_002)
        yield* proven(facilitator, 1_002)
        expect((yield* facilitator.ask("/log/1/checkpoint")).text).toMatch(/^pay\.example\/log\n502\n/)
        expect(yield* bytesAt(facilitator, "/log/tile/0/000")).toEqual(Buffer.concat(hashes.slice(0, 256)))
        // One origin has one tree: a client of the first epoch continues with it.
        const { headers, text } = yield* facilitator.ask("/log/checkpoint")
        expect(text).toMatch(/^pay\.example\/log\n502\n/)
        expect(headers.get("content-type")).toBe("text/plain; charset=utf-8")
        const later = (yield* facilitator.ask(`${place}/checkpoint`)).text
        expect(later.startsWith(`${next.proof.origin}\n`)).toBe(true)
        expect(later).toContain(`\nprevious pay.example/log 602 ${previous.root}\n`)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )

  it.live(
    "a replica adds what it alone had published of an epoch that another one ended",
    () =>
      Effect.gen(function* () {
        const source = yield* Context.get(yield* Layer.build(sourceLayer(kind)), DatabaseSource).open
        const files = yield* FileSystem.FileSystem
        const [own, others] = [yield* files.makeTempDirectoryScoped(), yield* files.makeTempDirectoryScoped()]
        const { ledgerUrl } = yield* startFacilitator({ channels: 1, set: ["plugins=[ledger-local,x402-exact]"] })
        const start = (stateFolder: string) =>
          startFacilitator({
            ledgerUrl,
            database: Layer.succeed(DatabaseSource, { open: Effect.succeed(source) }),
            stateFolder,
            channels: 1,
            environment: receiptSecrets,
            set: ["plugins=[x402-exact,receipts]", "receipts.host=pay.example"]
          })
        const first = yield* start(own)
        yield* publishFailures(first, 1, 10)
        const { checkpoint } = (yield* proven(first, 10)).json.outcomes[0].proof
        const [, , root] = checkpoint.split("\n")
        yield* first.sql`with lost as (delete from receipts_leaves where index >= 8),
          checkpoints as (delete from receipts_checkpoints where size > 8)
          update receipts_epochs set size = 8, server = 'another'`
        yield* first.stop
        const statementOf = (facilitator: Facilitator, size: number) =>
          Effect.map(
            eventually(facilitator.ask("/log/epochs"), ({ json }) =>
              Boolean(json?.epochs?.[1]?.statement?.includes(`\npay.example/log\n${size}\n`))
            ),
            ({ json }) => json.epochs[1].statement as string
          )
        const second = yield* start(others)
        yield* statementOf(second, 8)
        yield* second.stop
        const again = yield* start(own)
        expect(yield* statementOf(again, 12)).toContain(`\npay.example/log\n12\n${root}\n`)
        const entries = yield* again.sql<{ entry: Uint8Array }>`select entry from receipts_leaves
          where epoch = 2 and get_byte(entry, 0) = 3 order by index`
        const said = entries.map(({ entry }) => JSON.parse(Buffer.from(entry).subarray(1).toString()).previous)
        expect(said).toEqual([
          { origin: "pay.example/log", size: 8, root: expect.any(String) },
          { origin: "pay.example/log", size: 12, root }
        ])
        // It is reported once.
        yield* publishFailures(again, 101, 101)
        yield* proven(again, 101)
        const more = yield* again.sql`select 1 from receipts_leaves where epoch = 2 and get_byte(entry, 0) = 3`
        expect(more).toHaveLength(2)

        // A failover loses that entry after this replica published it: the next epoch has it again.
        yield* again.sql`with entry as (delete from receipts_leaves where epoch = 2 and get_byte(entry, 0) = 3
            and index > 0),
          later as (delete from receipts_leaves where epoch = 2 and index >= 3),
          checkpoints as (delete from receipts_checkpoints where epoch = 2)
          update receipts_epochs set size = case when epoch = 2 then 3 else size end, server = 'another',
            statement = null, previous_size = case when epoch = 2 then 8 end`
        yield* publishFailures(again, 201, 201)
        yield* statementOf(again, 12)
        const later = yield* again.sql<{ entry: Uint8Array }>`select entry from receipts_leaves
          where epoch = 3 and get_byte(entry, 0) = 3 order by index`
        expect(later.map(({ entry }) => JSON.parse(Buffer.from(entry).subarray(1).toString()).previous)).toMatchObject([
          { origin: expect.stringMatching(/\/log\//) },
          { origin: "pay.example/log", size: 12, root }
        ])
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )
})
