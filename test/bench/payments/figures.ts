// The measurements of the payments bench, as in its report. Milliseconds of processor time are per answer, and null if
// the system does not report them.

export interface Cpu {
  readonly facilitator: number | null
  readonly database: number | null
  readonly ledger: number | null
  readonly clients: number | null
}

/** One kind of payment at one facilitator, over all rounds. */
export interface Case {
  readonly name: string
  readonly subject: string
  readonly answers: number
  /** Answers per second, the median of the rounds. */
  readonly rate: number
  readonly rates: ReadonlyArray<number>
  readonly millis: { readonly p50: number; readonly p95: number; readonly p99: number }
  readonly curve: ReadonlyArray<number>
  readonly cpu: Cpu
  /** The facilitator's, round by round. */
  readonly cpuRounds: ReadonlyArray<number | null>
  readonly outcomes: Readonly<Record<string, number>>
}

/** How a settling case used its ledgers. */
export interface Settling {
  readonly settled: number
  readonly sent: number
  readonly channels: number
  /** Ledgers from the first to the last settlement, over all rounds. */
  readonly ledgers: number
  /** Settlements divided by the capacity of the channels in these ledgers. */
  readonly ofBound: number
}

/** Calls and statements per payment, minus those of an idle facilitator. */
export interface Counted {
  readonly payments: number
  readonly rpc: Readonly<Record<string, number>>
  readonly rpcCalls: number
  readonly statements: number
  readonly roundTrips: number
  /** Number of ledgers that closed in that time. */
  readonly ledgers: number
}

export interface Figures {
  readonly verify: { readonly ours: Case; readonly class: Case }
  readonly open: { readonly perSecond: number; readonly ours: Case; readonly class: Case }
  readonly refusals: {
    readonly valid: Case
    readonly malformed: Case
    readonly badlySigned: Case
    /** A server that parses malformed bodies as JSON, and answers. */
    readonly answeringAlone: Case
  }
  /** Processor time of one signature check, in milliseconds. */
  readonly signatureMillis: number
  readonly variants: {
    readonly bare: Case
    readonly keys: Case
    readonly telemetry: Case
    readonly plain: Case
    readonly metadata: Case
    /** The same bytes with an unread key. */
    readonly unread: Case
  }
  readonly settle: {
    readonly ours: Case & { readonly settling: Settling }
    readonly class: Case & { readonly settling: Settling }
    /** The first payments that warmed our facilitator, before its code was compiled. */
    readonly cold: Case
  }
  readonly counted: {
    readonly verify: Counted
    readonly malformed: Counted
    readonly badlySigned: Counted
    readonly settle: Counted
    readonly classVerify: Counted
    readonly classSettle: Counted
  }
  readonly busy?: Case & { readonly settling: Settling }
}
