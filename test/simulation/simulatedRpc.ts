// The ledger's RPC from the view of a replica: each request goes to some node, takes time, may fail on the way, and
// gets that node's answer. Submissions may be lost, refused without reason, or accepted and reported as refused.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Effect, Option, Result } from "effect"
import { type Envelope, readEnvelope } from "../../kernel/stellar/Envelope.ts"
import type { ExecutedTransaction } from "../../kernel/ledger/Executed.ts"
import { LedgerRpc, LedgerUnavailable, type ScanRequest } from "../../kernel/ledger/LedgerRpc.ts"
import type { LedgerAccount } from "../../kernel/stellar/LedgerEntry.ts"
import type { Occurrence } from "./Coverage.ts"
import { resourceFeeStroops } from "./keys.ts"
import { batchAccount } from "./SimulatedBatch.ts"
import type { Authorization, Foreign, Included, Submission, Usurpation } from "./SimulatedLedger.ts"
import type { SimulatedNode } from "./SimulatedNode.ts"
import { asset, operationOf } from "./simulatedScheme.ts"
import type { Replica } from "./Replica.ts"
import type { World } from "./World.ts"

type Send = ReturnType<LedgerRpc["Service"]["send"]>

/** Codes of a refusal without a reason. */
const spuriousCodes = ["txInsufficientFee", "txBadSeq", "txInternalError", "txBadAuth"] as const

/** Balance in stroops of our accounts other than channels. */
const sponsorBalanceStroops = 1_000_000_000n

/** Whether a transaction's meta can be read. */
export const isMetaReadable = ({ innerHash }: Included): boolean => innerHash.charCodeAt(0) % 5 !== 0

/** The one transfer of an amount; empty for nothing. */
const transfersOf = ({ act, payTo, payer }: Authorization, amount: bigint | undefined) =>
  amount === undefined || amount === 0n
    ? []
    : // A withdrawal is signed by the payer that it pays.
      [{ contract: asset, from: act === undefined || act.kind === "deposit" ? payer : batchAccount, to: payTo, amount }]

/** The ledger's view of a transaction; its meta is sometimes unreadable. */
const executedOf = (included: Included): ExecutedTransaction => {
  const { authorization, closedAtSeconds, feeChargedStroops, innerHash, ledger, moved: amount, outerHash } = included
  const { succeeded } = included
  const isReadable = isMetaReadable(included)
  const moved = authorization === undefined ? [] : transfersOf(authorization, amount)
  return {
    ledger,
    closedAtSeconds,
    innerHash,
    outerHash,
    feeChargedStroops,
    succeeded,
    transfers: isReadable || !succeeded ? Option.some(moved) : Option.none()
  }
}

/** A lying node's answer about a payment that is on no ledger. */
const forgedOf = (submission: Submission, node: SimulatedNode, endpoint: number): ExecutedTransaction => ({
  ledger: node.latestLedger,
  closedAtSeconds: 0,
  innerHash: submission.innerHash,
  outerHash: submission.outerHash,
  feeChargedStroops: resourceFeeStroops,
  succeeded: true,
  transfers: Option.none(),
  endpoint
})

/** A stranger's transaction. */
const strangersOf = ({ authorization, closedAtSeconds, hash, ledger, moved }: Foreign) => ({
  executed: {
    ledger,
    closedAtSeconds,
    innerHash: hash,
    outerHash: hash,
    feeChargedStroops: resourceFeeStroops,
    succeeded: true,
    transfers: Option.some(transfersOf(authorization, moved))
  },
  envelope: {
    type: 2,
    v1: {
      tx: {
        sourceAccount: { type: 0, ed25519: new Uint8Array(32) },
        seqNum: 1n,
        operations: [xdr.Operation.schema.decode(operationOf(authorization.number))]
      },
      signatures: []
    }
  } as unknown as Envelope
})

/** A transaction on one of our channels that we did not send. */
const usurpersOf = ({ channel, hash, ledger, sequence }: Usurpation) => ({
  executed: {
    ledger,
    closedAtSeconds: 0,
    innerHash: hash,
    outerHash: hash,
    feeChargedStroops: 100n,
    succeeded: true,
    transfers: Option.some([])
  },
  envelope: {
    type: 2,
    v1: {
      tx: {
        sourceAccount: { type: 0, ed25519: StrKey.decodeEd25519PublicKey(channel) },
        seqNum: sequence,
        operations: []
      },
      signatures: []
    }
  } as unknown as Envelope
})

export const simulatedRpc = (world: World, replica: Replica): LedgerRpc["Service"] => {
  const { ledger, random } = world
  const someNode = (): SimulatedNode => {
    const isCalled = (_: SimulatedNode, number: number) => !replica.unfit.has(number) && !replica.distrusted.has(number)
    const fit = world.isBalanced ? world.nodes : world.nodes.filter(isCalled)
    return random.pick(fit.length === 0 ? world.nodes : fit)
  }
  const asked = <A>(
    operation: string,
    run: (node: SimulatedNode) => A | LedgerUnavailable,
    which: () => SimulatedNode = someNode
  ) =>
    Effect.suspend(() => {
      const node = which()
      const failure = () => {
        if (!random.chance(world.faults.rpcAway)) return undefined
        world.fault("rpc unavailable")
        return new LedgerUnavailable({ operation, message: "away" })
      }
      const answer = () => {
        if (node.lag > 0) world.coverage.count("node behind")
        if (node.retention < 1_000) world.coverage.count("node forgets")
        if (node.stillAt !== undefined) world.coverage.count("node frozen")
        return run(node)
      }
      return world.call(replica, answer, { before: failure, after: failure })
    }).pipe(
      Effect.flatMap((answer) => (answer instanceof LedgerUnavailable ? Effect.fail(answer) : Effect.succeed(answer)))
    ) as Effect.Effect<A, LedgerUnavailable>

  /** The newest ledger in a node's answer, sometimes far ahead. */
  const claimed = (node: SimulatedNode): number => {
    const sequence = node.claimedLedger
    if (sequence !== node.latestLedger) world.coverage.count("node far ahead")
    return sequence
  }

  const endpointOf = (node: SimulatedNode) => (world.isBalanced ? 0 : world.nodes.indexOf(node))

  const transaction = (hash: string, which = someNode) =>
    asked(
      "getTransaction",
      (node) => {
        const { latestLedger, oldestLedger } = node
        const found = ledger.included.get(hash)
        if (found !== undefined && node.knows(found))
          return {
            _tag: "Included" as const,
            latestLedger,
            executed: { ...executedOf(found), endpoint: endpointOf(node) }
          }
        const other = ledger.foreign.find((one) => one.hash === hash && one.ledger <= latestLedger)
        if (other !== undefined)
          return {
            _tag: "Included" as const,
            latestLedger,
            executed: { ...strangersOf(other).executed, endpoint: endpointOf(node) }
          }
        const submission = found === undefined ? world.submissionOf(hash) : undefined
        if (submission !== undefined && node.isForged(submission.innerHash)) {
          world.coverage.count("forged success")
          return { _tag: "Included" as const, latestLedger, executed: forgedOf(submission, node, endpointOf(node)) }
        }
        if (found !== undefined && found.ledger <= latestLedger && found.ledger >= oldestLedger)
          world.coverage.count("false NOT_FOUND")
        return { _tag: "NotFound" as const, latestLedger: claimed(node), oldestLedger }
      },
      which
    )

  const scan = ({ fromLedger, toLedger, matches }: ScanRequest, which = someNode) => {
    const read = (node: SimulatedNode) => {
      const { latestLedger, oldestLedger } = node
      if (fromLedger < oldestLedger || fromLedger > latestLedger)
        return new LedgerUnavailable({ operation: "getTransactions", message: "outside its range" })
      world.coverage.count("ledgers scanned")
      const scannedTo = Math.min(toLedger ?? latestLedger, latestLedger)
      const isAsked = (hash: string, at: number) => at >= fromLedger && at <= scannedTo && matches(hash)
      const ours = ledger.log
        .filter((one) => isAsked(one.outerHash, one.ledger) && node.knows(one))
        .map((one) => ({
          executed: { ...executedOf(one), endpoint: endpointOf(node) },
          get envelope() {
            return Result.getOrThrow(readEnvelope(one.envelope))
          }
        }))
      const others = ledger.foreign.filter((one) => isAsked(one.hash, one.ledger)).map(strangersOf)
      const usurpers = ledger.usurpations.filter((one) => isAsked(one.hash, one.ledger)).map(usurpersOf)
      return { scannedTo, oldestLedger, found: [...ours, ...others, ...usurpers] }
    }
    return asked("getTransactions", read, which)
  }

  const accounts = (addresses: ReadonlyArray<string>) =>
    asked("getLedgerEntries", ({ latestLedger }) => ({
      latestLedger,
      accounts: new Map(
        addresses.map((address): [string, LedgerAccount] => {
          const state = ledger.accountAt(address, latestLedger)
          return [
            address,
            {
              address,
              balanceStroops: sponsorBalanceStroops,
              reserveStroops: 10_000_000n,
              sequence: state?.sequence ?? 1n
            }
          ]
        })
      )
    }))

  const snapshots = (
    queries: Parameters<LedgerRpc["Service"]["snapshots"]>[0],
    which = someNode
  ): ReturnType<LedgerRpc["Service"]["snapshots"]> =>
    asked(
      "getLedgerEntries",
      (node) => ({
        latestLedger: claimed(node),
        endpoint: endpointOf(node),
        snapshots: queries.map(({ channel, nonce }) => ({
          sequence: ledger.accountAt(channel, node.latestLedger)?.sequence,
          nonce:
            nonce === undefined
              ? ("unknown" as const)
              : (ledger.spentAt({ payer: nonce.address, nonce: nonce.nonce }, node.latestLedger)?.ledger ??
                ("unspent" as const))
        }))
      }),
      which
    )

  const nonceSpent = (payer: string, nonce: bigint) =>
    asked("getLedgerEntries", ({ latestLedger }) => {
      const entry = ledger.spentAt({ payer, nonce }, latestLedger)
      return { latestLedger, spent: entry !== undefined, inLedger: Option.fromUndefinedOr(entry?.ledger) }
    })

  const latestLedger = (which?: () => SimulatedNode) =>
    asked(
      "getLatestLedger",
      (node) => {
        const sequence = claimed(node)
        const endpoint = endpointOf(node)
        const closedAtSeconds = ledger.closeTimeOf(node.latestLedger)
        return { sequence, closedAtSeconds, protocolVersion: 26, endpoint }
      },
      which
    )

  return LedgerRpc.of({
    // The simulated schemes store nothing in contracts.
    contractData: () => asked("getLedgerEntries", ({ latestLedger }) => ({ latestLedger, values: new Map() })),
    contractEvents: () => asked("getEvents", ({ latestLedger }) => ({ latestLedger, events: [] })),
    latestLedger: latestLedger(),
    latestLedgers: Effect.suspend(() => {
      const each = world.isBalanced ? [latestLedger()] : world.nodes.map((node) => latestLedger(() => node))
      const answers = Effect.forEach(each, (asked) => Effect.option(asked), { concurrency: "unbounded" })
      return Effect.map(answers, (all) => all.flatMap(Option.toArray))
    }),
    header: (sequence) => asked("getLedgers", () => ({ hash: String(sequence), isFirst: sequence <= 2 })),
    others: (but) =>
      Effect.sync(() =>
        (world.isBalanced ? [] : world.nodes).flatMap((node, endpoint) =>
          endpoint === but
            ? []
            : {
                endpoint,
                snapshots: (queries) => snapshots(queries, () => node),
                transaction: (hash) => transaction(hash, () => node),
                scan: (request) => scan(request, () => node)
              }
        )
      ),
    distrust: (endpoint) => Effect.sync(() => void replica.distrusted.add(endpoint)),
    distrusted: Effect.sync(() => [...replica.distrusted]),
    setUnfit: (unfit) => Effect.sync(() => void (replica.unfit = unfit)),
    feeStats: asked("getFeeStats", () => {
      const floor = ledger.surge?.floorStroops ?? 100n
      return { p50: floor, p90: floor + floor / 5n, p99: 2n * floor + 800n }
    }),
    // Simulates a payment by its number, because the simulated scheme does not build envelopes.
    simulate: (number) =>
      asked("simulateTransaction", ({ latestLedger }) => {
        const authorization = world.authorizations.get(Number(number))!
        const { act } = authorization
        const refused = (code: string) => ({ _tag: "Refused" as const, latestLedger, code, detail: "" })
        if (act !== undefined && !ledger.batch.allows(act, ledger.sequence)) return refused("Error(Contract, #211)")
        return ledger.spentAt(authorization, latestLedger) !== undefined
          ? refused("Error(Auth, ExistingValue)")
          : {
              _tag: "Simulated" as const,
              latestLedger,
              resourceFeeStroops,
              sorobanDataXdr: new Uint8Array(),
              eventsXdr: [],
              authXdr: []
            }
      }),
    send: (_envelope, outerHash) => send(world, replica, outerHash),
    transaction: (hash) => transaction(hash),
    scan: (request) => scan(request),
    accounts,
    snapshots: (queries) => snapshots(queries),
    codeHash: () => Effect.succeed(Option.none()),
    holdings: () => Effect.succeed(Option.none()),
    nonceSpent
  })
}

const send = (world: World, replica: Replica, outerHash: string): Send => {
  const { coverage, random } = world
  const seen = (answer: Effect.Success<Send>) => {
    coverage.count(`send ${answer._tag}` as Occurrence)
    return answer
  }
  const refused = (code: string, requiredStroops?: bigint) =>
    seen({ _tag: "Error", code, ...(requiredStroops === undefined ? {} : { requiredStroops }) } as never)
  const run = (): Effect.Success<Send> => {
    const { sendError, sendLost, sendTryAgain } = world.faults
    const submission = world.submissions.get(outerHash)
    if (submission === undefined) throw new Error("an unsigned envelope")
    if (random.chance(sendTryAgain)) {
      world.faultsSeen += 1
      return seen({ _tag: "TryAgainLater" })
    }
    if (random.chance(sendError / 2)) {
      world.faultsSeen += 1
      return refused(random.pick(spuriousCodes))
    }
    const isLost = random.chance(sendLost)
    if (isLost && random.chance(0.5)) {
      world.faultsSeen += 1
      return seen({ _tag: "Lost", message: "never arrived" })
    }
    const submitted = world.ledger.submit(submission)
    if (isLost) {
      world.fault("send taken but lost")
      return seen({ _tag: "Lost", message: "the answer was lost" })
    }
    if (submitted._tag === "Taken" && random.chance(sendError / 2)) {
      world.fault("send Error but taken")
      return refused("txBadAuth")
    }
    if (submitted._tag !== "Refused") return seen({ _tag: submitted._tag === "Taken" ? "Pending" : "Duplicate" })
    if (submitted.requiredStroops !== undefined) coverage.count("bid too low")
    return refused(submitted.code, submitted.requiredStroops)
  }
  return Effect.suspend(() =>
    world.call(replica, run, { before: (): undefined => undefined, after: (): undefined => undefined })
  ) as Send
}
