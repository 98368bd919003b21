import type { Client } from "./operations.mjs"

export type * from "./operations.mjs"

/** The facilitator answered, and not with a success. */
export declare class AnswerRefused extends Error {
  readonly operation: string
  readonly status: number
  readonly body: unknown
  readonly retryAfterSeconds: number | undefined
}

/** One function for each operation of a facilitator, and `followSettlements`. */
export declare const makeClient: (options: {
  readonly url: string
  readonly key?: string
  readonly fetch?: typeof fetch
}) => Client
