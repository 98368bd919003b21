// One settle request from a seller's program.

export interface PostSettleOptions {
  readonly timeoutMillis: number
  /** The caller's key; without one it is anonymous. */
  readonly key?: string
  /** The seller's key for the sale. */
  readonly idempotencyKey?: string | undefined
}

/** Returns the answer's members with its status; rejects without an answer. */
export const postSettle = async (
  url: string,
  body: unknown,
  { idempotencyKey, key, timeoutMillis }: PostSettleOptions
): Promise<any> => {
  const response = await fetch(`${url}/settle`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey })
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(timeoutMillis)
  })
  return { status: response.status, ...((await response.json()) as object) }
}
