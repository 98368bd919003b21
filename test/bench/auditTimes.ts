// The audit with the log over many settlements of a facilitator: their rows and leaves are copies of a settled payment,
// older than the ledger's history. The running facilitator adds them to the map and signs the log. Measures time and
// memory of the command, and the time of a run that resumes.
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { addLeaf, emptyTree } from "../../runtime/logTree.ts"
import type { Subject } from "./payments/world.ts"
import { connectTo } from "./rig/database.ts"
import { programArgs, root } from "./rig/program.ts"

export interface AuditTime {
  readonly settlements: number
  readonly seconds: number
  readonly mebibytes: number
}

const copies = (count: number): string => `with one as (
    select s.*, gen_random_uuid() as copy from kernel_settlements s, generate_series(1, ${count})
    where s.id = (select id from kernel_settlements where state = 'settled' order by recorded_at limit 1)),
  born as (
    insert into kernel_settlements select row.* from one cross join lateral
      jsonb_populate_record(null::kernel_settlements, to_jsonb(one) ||
      jsonb_build_object('id', copy, 'authorization_key', copy, 'identifier', null, 'ended_by', null,
        'inner_hash', encode(sha256(copy::text::bytea), 'hex'), 'recorded_ledger', 0, 'ledger', 0,
        'fee_charged_stroops', 0, 'confirmations', 1)) as row
    returning id, inner_hash, moved, principal),
  attempts as (
    insert into kernel_attempts (settlement, number, kind, inner_hash, outer_hash, envelope, inclusion_stroops,
      recorded_ledger)
    select id, 1, 'payment', inner_hash, encode(sha256(inner_hash::bytea), 'hex'), '\\x00', 100, 0 from born)
  insert into kernel_facts (type, version, subject, principal, data)
  -- Version 2: consumers skip these facts, so the leaves are only those of this file.
  select 'settlement.' || type, 2, id::text, principal, jsonb_build_object('transaction', inner_hash, 'moved',
    moved::text, 'feeChargedStroops', '0', 'ledger', 0, 'reason', null)
  from born, (values (1, 'recorded'), (2, 'settled')) as t (n, type) order by n`

const logged = `with locked as (select pg_advisory_xact_lock(724402407)),
  epoch as (select epoch, size from receipts_epochs, locked order by epoch desc limit 1),
  unlogged as (select s.*, replace(network, 'ledger:', 'stellar:') as caip,
      floor(extract(epoch from greatest(recorded_at, resolved_at)) * 1000)::int8 as at
    from kernel_settlements s where ledger = 0
      and not exists (select 1 from receipts_leaves l where l.transaction = decode(s.inner_hash, 'hex'))),
  signed as (select *, 'e30.' || translate(encode(jsonb_strip_nulls(jsonb_build_object('v', 1,
      'iss', 'did:web:pay.example', 'network', caip, 'transaction', inner_hash, 'ledger', 0,
      'closedAt', floor(extract(epoch from closed_at))::int8, 'payer', payer, 'payTo', pay_to, 'asset', asset,
      'amount', moved::text, 'scheme', scheme, 'settlement', id, 'attempts', attempt_count, 'fee', '0',
      'confirmations', 1, 'resource', resource_url))::text::bytea, 'base64'), E'+/=\\n', '-_') || '.AA' as jws
    from unlogged),
  kept as (insert into receipts_receipts (transaction, network, jws)
    select decode(inner_hash, 'hex'), caip, jws from signed),
  records as (select *, sha256(id::text::bytea) as salt, format('{"at":%s,"fee":"0","ledger":0,"moved":"%s",' ||
      '"network":"%s","outcome":"settled","receipt":"sha256:%s","settlement":"%s","transaction":"%s","v":1}', at, moved,
      caip, encode(sha256(jws::bytea), 'hex'), id, inner_hash) as record from signed),
  leaves as (insert into receipts_leaves (epoch, index, entry, salt, record, transaction, principal, payer, pay_to)
    select epoch, size + row_number() over () - 1, '\\x01'::bytea || sha256(salt || record::bytea), salt, record,
      decode(inner_hash, 'hex'), principal, payer, pay_to from records, epoch returning 1)
  update receipts_epochs set size = size + (select count(*) from leaves)
  where epoch = (select epoch from epoch)`

/** Stores the roots of all full tiles. */
const fillTiles = async (database: ReturnType<typeof connectTo>): Promise<void> => {
  const rows = await database.query("select entry from receipts_leaves order by index")
  const [tree, nodes]: [ReturnType<typeof emptyTree>, Array<string>] = [emptyTree(), []]
  for (const { entry } of rows)
    addLeaf(tree, entry, (level, index, root) => nodes.push(`(1, ${level}, ${index}, '\\x${root}')`))
  await database.query(`insert into receipts_nodes (epoch, level, index, hash) values ${nodes.join()}
    on conflict do nothing`)
}

const peakOf = (pid: number): number => {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1_024
  } catch {
    return 0
  }
}

const runAudit = async ({ databaseUrl, settings, sponsorSecret, stateFolder }: Subject, file?: string) => {
  const args = ["audit", "--log", "--json", "--state", stateFolder!, ...settings!.flatMap((one) => ["--set", one])]
  const from = performance.now()
  const child = spawn(process.execPath, [...programArgs, ...args, ...(file === undefined ? [] : ["--resume", file])], {
    cwd: root,
    env: { ...process.env, DATABASE_URL: databaseUrl!, SPONSOR_SECRET: sponsorSecret! },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let [text, mebibytes] = ["", 0]
  child.stdout.on("data", (bytes) => (text += bytes))
  child.stderr.on("data", (bytes) => (text += bytes))
  const watch = setInterval(() => (mebibytes = Math.max(mebibytes, peakOf(child.pid!))), 100)
  const code = await new Promise((resolve) => child.on("close", resolve))
  clearInterval(watch)
  if (code !== 0) throw new Error(`the audit failed: ${text.slice(-2_000)}`)
  return { seconds: (performance.now() - from) / 1_000, mebibytes }
}

/** Times the audit at each number of settlements, in rising order. */
export const auditTimes = async (
  subject: Subject,
  counts: ReadonlyArray<number>
): Promise<{ readonly times: ReadonlyArray<AuditTime>; readonly resumed: number }> => {
  const database = connectTo(subject.databaseUrl!)
  const count = async (text: string) => Number((await database.query(`select count(*) as n from ${text}`))[0]!["n"])
  const times: Array<AuditTime> = []
  try {
    for (const settlements of counts) {
      await database.query(copies(settlements - (await count("kernel_settlements"))))
      await database.query(logged)
      await fillTiles(database)
      await database.query("analyze")
      while (
        (await count("receipts_epochs e join receipts_checkpoints c using (epoch, size)")) === 0 ||
        (await count("receipts_leaves where record is not null")) < settlements
      )
        await new Promise((resolve) => setTimeout(resolve, 1_000))
      times.push({ settlements, ...(await runAudit(subject)) })
    }
    const file = join(subject.stateFolder!, "position.json")
    await runAudit(subject, file)
    return { times, resumed: (await runAudit(subject, file)).seconds }
  } finally {
    await database.close()
  }
}
