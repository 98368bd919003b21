// One request to settle, as a seller's program sends it.

export interface PostSettleOptions {
  readonly timeoutMillis: number
  /** The caller's key; without one it is anonymous. */
  readonly key?: string
}

/** The answer's members, with its status; rejects when there is no answer. */
export const postSettle = async (
  url: string,
  body: unknown,
  { key, timeoutMillis }: PostSettleOptions
): Promise<any> => {
  const response = await fetch(`${url}/settle`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` })
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(timeoutMillis)
  })
  return { status: response.status, ...((await response.json()) as object) }
}
