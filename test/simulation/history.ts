// A random history of repository operations, as data that depends on the seed alone: births that clash on every
// constraint, attempts, endings, deliveries, leases that run out, budgets, and time. Played on the SQL repository and
// on its twin, it must give the same answers and leave the same tables.
import { Option } from "effect"
import type { Outcome } from "../../kernel/settlement/state/Settlement.ts"
import type {
  AdoptedSettlement,
  DeliveryClaim,
  DeliveryEnd,
  NewSettlement
} from "../../kernel/settlement/store/Settlements.ts"
import { makeRandom, type Random } from "./random.ts"
import { principalOf } from "./simulatedScheme.ts"

export type Step =
  | { readonly op: "wait"; readonly millis: number }
  /** Records with the lease in that slot, or with an invented one. */
  | { readonly op: "record"; readonly slot: number; readonly settlement: Omit<NewSettlement, "channel"> }
  /** Leases several concurrently into a slot and those after it. */
  | { readonly op: "take"; readonly slot: number; readonly count: number }
  | { readonly op: "release"; readonly slot: number }
  | { readonly op: "addAttempt"; readonly id: string; readonly outerHash: string; readonly attemptsKnown: number }
  | {
      readonly op: "noteSent"
      readonly id: string
      readonly number: number
      readonly status: "Pending" | "Error"
      readonly code: string | undefined
      readonly ledger: number
    }
  | {
      readonly op: "resolve"
      readonly id: string
      readonly outcome: Outcome
      readonly attemptsKnown: number | undefined
    }
  | { readonly op: "distrust" }
  | {
      readonly op: "rebuild"
      readonly id: string
      readonly slot: number
      readonly innerHash: string
      readonly attemptsKnown: number
    }
  | { readonly op: "free"; readonly id: string; readonly ledger: number; readonly attemptsKnown: number }
  | (DeliveryClaim & { readonly op: "claim"; readonly principal: string; readonly key: string | undefined })
  | (DeliveryEnd & { readonly op: "endDelivery" })
  | { readonly op: "processBegins" | "processEnds"; readonly process: string }
  | {
      readonly op: "find"
      readonly key: string
      readonly identifier: string
      readonly principal: string
      readonly payer: string
      readonly payTo: string
    }
  | { readonly op: "open" }
  | { readonly op: "counts" }
  | { readonly op: "learn"; readonly channel: string; readonly sequence: bigint; readonly asOfLedger: number }
  | {
      readonly op: "correct"
      readonly channel: string
      readonly known: bigint
      readonly sequence: bigint
      readonly asOfLedger: number
    }
  | { readonly op: "adopt"; readonly settlement: AdoptedSettlement }
  | { readonly op: "byIds"; readonly ids: ReadonlyArray<string> }
  | { readonly op: "endsOf"; readonly ids: ReadonlyArray<string> }
  | { readonly op: "hold"; readonly name: string; readonly holder: number; readonly millis: number }
  | { readonly op: "fits"; readonly principal: string; readonly stroops: bigint }

export const channels = ["channel-a", "channel-b", "channel-c"] as const
export const slots = 4

/** Ids from a small pool, so that steps affect each other's rows; stable under SQL's uuid form. */
const idOf = (number: number): string => `00000000-0000-4000-a000-${String(number).padStart(12, "0")}`
const hashOf = (text: string): string => text.padEnd(64, "0").slice(0, 64)

const outcomeOf = ({ chance, int, pick }: Random): Outcome => {
  const state = pick(["settled", "failed", "expired", "unresolved"] as const)
  const ledger = int(1_001, 1_100)
  return {
    state,
    transaction: state === "expired" || chance(0.2) ? undefined : hashOf(`aa${int(1, 12)}`),
    feeUnknown: state === "unresolved" && chance(0.5),
    ledger: state === "expired" ? undefined : ledger,
    closedAtSeconds: state === "expired" ? undefined : 1_767_000_000 + ledger,
    amountTransferred: state === "settled" ? 10n : undefined,
    feeChargedStroops: state === "expired" ? 0n : BigInt(int(100, 50_000)),
    reason:
      state === "failed"
        ? "settle_ledger_transaction_failed"
        : state === "expired"
          ? "settle_ledger_transaction_expired"
          : undefined,
    message: chance(0.5) ? "why" : undefined,
    channel: chance(0.95) ? { sequenceUsed: chance(0.1) ? undefined : state !== "expired", ledger } : undefined
  }
}

export const historyOf = (seed: number, length = 60): ReadonlyArray<Step> => {
  const random = makeRandom(seed)
  const { chance, int, pick } = random
  const principals = ["key:a", "key:b", "ip:c"]
  const id = () => idOf(int(1, 12))
  let births = 0
  const settlement = (): Omit<NewSettlement, "channel"> => {
    births += 1
    const number = chance(0.8) ? births : int(1, 12)
    const principal = pick(principals)
    return {
      id: idOf(number),
      network: "ledger:testnet",
      scheme: "simulated",
      authorizationKey: `authorization-${chance(0.85) ? number : int(1, 12)}`,
      authorizationExpiresLedger: int(1_005, 1_050),
      fingerprint: `fingerprint-${number}`,
      principal: principalOf(principal),
      identifier: chance(0.5) ? Option.some("identifier") : Option.none(),
      payer: `payer-${births % 2}`,
      payTo: `seller-${int(1, 2)}`,
      asset: "asset",
      amountMax: 10n,
      amount: 10n,
      resourceUrl: Option.none(),
      innerHash: hashOf(`aa${chance(0.9) ? number : int(1, 12)}`),
      sponsor: "sponsor",
      resourceFeeStroops: 40_000n,
      recordedLedger: int(1_000, 1_020),
      deadlineAt: 1_767_000_000_000 + int(0, 60_000),
      budgetStroops: pick([50_000n, 90_000n]),
      attempt: {
        kind: "payment",
        innerHash: hashOf(`aa${number}`),
        outerHash: hashOf(`bb${number}`),
        envelope: "AAAA",
        inclusionStroops: 200n,
        recordedLedger: 1_000
      }
    }
  }
  const adopted = (): AdoptedSettlement => {
    const { attempt, identifier, ...born } = settlement()
    const ledger = int(1_001, 1_100)
    return {
      ...born,
      identifier,
      outerHash: attempt.outerHash,
      envelope: attempt.envelope,
      channel: pick(channels),
      channelSequence: BigInt(int(90, 120)),
      inclusionStroops: attempt.inclusionStroops,
      ledger,
      closedAtSeconds: 1_767_000_000 + ledger,
      feeChargedStroops: BigInt(int(100, 50_000)),
      amountTransferred: born.amount
    }
  }
  /** Two processes claim successes, send them or not, and die. */
  const delivering = (): Step => {
    const claim = { id: id(), process: pick(["one", "two"]), claim: BigInt(int(1, 3)) }
    const roll = random.next()
    if (roll < 0.5)
      return { op: "claim", ...claim, principal: pick(["key:a", "key:b", "anonymous"]), key: pick([undefined, "key"]) }
    if (roll < 0.7) return { op: "endDelivery", ...claim, hasLeft: chance(0.6) }
    return { op: roll < 0.88 ? "processBegins" : "processEnds", process: claim.process }
  }
  const step = (): Step => {
    const roll = random.next()
    if (roll < 0.14) return { op: "take", slot: int(0, slots - 1), count: int(1, 2) }
    if (roll < 0.34) return { op: "record", slot: int(0, slots - 1), settlement: settlement() }
    if (roll < 0.38) return { op: "release", slot: int(0, slots - 1) }
    if (roll < 0.4)
      return {
        op: "rebuild",
        id: id(),
        slot: int(0, slots - 1),
        innerHash: hashOf(`dd${int(1, 999)}`),
        attemptsKnown: int(1, 2)
      }
    if (roll < 0.46)
      return { op: "addAttempt", id: id(), outerHash: hashOf(`cc${int(1, 99)}`), attemptsKnown: int(1, 2) }
    if (roll < 0.52)
      return {
        op: "noteSent",
        id: id(),
        number: int(1, 2),
        status: pick(["Pending", "Error"]),
        code: pick([undefined, "txBadSeq"]),
        ledger: int(1_000, 1_050)
      }
    if (roll < 0.62)
      return { op: "resolve", id: id(), outcome: outcomeOf(random), attemptsKnown: pick([undefined, 1, 2]) }
    if (roll < 0.64) return { op: "free", id: id(), ledger: int(1_001, 1_100), attemptsKnown: pick([1, 1, 2]) }
    if (roll < 0.7) return delivering()
    if (roll < 0.76)
      return {
        op: "find",
        key: `authorization-${int(1, 12)}`,
        identifier: `identifier-${int(1, 2)}`,
        principal: pick(["key:a", "key:b", "anonymous"]),
        payer: `payer-${int(0, 1)}`,
        payTo: `seller-${int(1, 2)}`
      }
    if (roll < 0.8) return { op: "open" }
    if (roll < 0.83) return { op: "counts" }
    if (roll < 0.845) return { op: "byIds", ids: [id(), id()] }
    if (roll < 0.86) return { op: "endsOf", ids: [id(), id(), id()] }
    if (roll < 0.91)
      return { op: "hold", name: pick(["settlements", "channels"]), holder: int(0, 1), millis: pick([2_000, 10_000]) }
    if (roll < 0.92)
      return {
        op: "correct",
        channel: pick(channels),
        known: pick([100n, 101n, 102n]),
        sequence: BigInt(int(100, 110)),
        asOfLedger: int(900, 1_100)
      }
    if (roll < 0.93) return { op: "adopt", settlement: adopted() }
    if (roll < 0.94)
      return { op: "learn", channel: pick(channels), sequence: BigInt(int(200, 999)), asOfLedger: int(900, 1_100) }
    if (roll < 0.945) return { op: "distrust" }
    if (roll < 0.95) return { op: "fits", principal: pick(principals), stroops: pick([10_000n, 200_000n]) }
    return { op: "wait", millis: pick([1, 400, 3_000, 6_000, 86_400_000]) }
  }
  return Array.from({ length }, step)
}
