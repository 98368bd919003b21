// Requests from the page to this facilitator, and to no other host. A request is loading, ready or failed, and a page
// shows each state. When the server does not answer, the last response stays, marked as stale, and is retried with
// exponential backoff until the server is back.
import { useEffect, useState } from "preact/hooks"

export interface Ready<A> {
  readonly state: "ready"
  readonly body: A
  /** Why the last refresh failed. Absent if it succeeded. */
  readonly lost?: string
}
export interface Failed {
  readonly state: "failed"
  /** 0 if no response arrived. */
  readonly status: number
  readonly words: string
}
export type Asked<A> = { readonly state: "loading" } | Ready<A> | Failed

const pauseFirst = 1_000
const pauseMax = 15_000

/** Exponential backoff: the next pause in milliseconds, and a return to the first one. */
export const makeBackoff = () => {
  let pause = pauseFirst
  return {
    next: (): number => {
      const now = pause
      pause = Math.min(pause * 2, pauseMax)
      return now
    },
    reset: (): void => void (pause = pauseFirst)
  }
}

const hex = (bytes: number): string =>
  [...crypto.getRandomValues(new Uint8Array(bytes))].map((byte) => byte.toString(16).padStart(2, "0")).join("")

/** The error message, with the request id. The id is that of the trace, as in the facilitator's log. */
const wordsOf = (status: number, body: any, id?: string): string => {
  const said = sentenceOf(status, body)
  return id === undefined || status === 401 ? said : `${said.replace(/[.]?$/, ".")} Request ${id}.`
}

/** Sentences for error codes that come without a message. */
const codes: Readonly<Record<string, string>> = {
  invalid_parameter: "A filter does not fit",
  invalid_filter: "A filter does not fit",
  invalid_cursor: "This page of the list is no longer there; reload the page",
  not_found: "Nothing is here under this name",
  rate_limited: "Too many requests; try again in a moment",
  temporarily_unavailable: "The facilitator is busy, or its database does not answer; try again in a moment"
}

const parameters: Readonly<Record<string, string>> = {
  address: "Account",
  max: "At most",
  min: "At least",
  party: "Account",
  payTo: "Recipient",
  q: "Words",
  resourceId: "Listing"
}

const capital = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`

const detailOf = (detail: unknown): string =>
  String(detail).replace(/^(\w+): /, (_, name: string) => `${parameters[name] ?? capital(name)}: `)

/** An error response as a sentence: its message, or its code and the details. */
export const sentenceOf = (status: number, body: any): string => {
  if (status === 401) return "A key is required: sign in first."
  if (status === 0) return "The facilitator does not answer."
  const code = typeof body?.error === "string" ? (codes[body.error] ?? body.error.replaceAll("_", " ")) : undefined
  const details = Array.isArray(body?.details) ? `. ${body.details.map(detailOf).join("; ")}` : ""
  return capital(`${body?.message ?? code ?? `status ${status}`}${details}`)
}

/** Sends a request. Returns the response, or the reason that none arrived. */
const request = async <A>(
  path: string,
  init: RequestInit,
  read: (response: Response) => Promise<A>
): Promise<Ready<A> | Failed> => {
  let response: Response
  const id = hex(16)
  const headers = { ...(init.headers as Readonly<Record<string, string>>), traceparent: `00-${id}-${hex(8)}-00` }
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...init, headers })
    if (response.ok) return { state: "ready", body: await read(response) }
  } catch (error) {
    if (init.signal?.aborted === true) throw error
    return { state: "failed", status: 0, words: wordsOf(0, undefined) }
  }
  const body = await response.json().catch(() => undefined)
  return { state: "failed", status: response.status, words: wordsOf(response.status, body, body?.traceId ?? id) }
}

/** Sends one request. Rejects only when `signal` aborts. */
export const ask = <A>(path: string, init: RequestInit = {}): Promise<Ready<A> | Failed> =>
  request(path, init, (response) => response.json() as Promise<A>)

export const askCsv = (path: string): Promise<Ready<string> | Failed> =>
  request(path, { headers: { accept: "text/csv" } }, (response) => response.text())

/** Posts JSON to a route of this origin; the header proves that a page of ours sent it. */
export const post = <A>(path: string, body: unknown): Promise<Ready<A> | Failed> =>
  ask<A>(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-tollkeeper-page": "1" },
    body: JSON.stringify(body)
  })

const isPassing = (status: number): boolean => status === 0 || status === 429 || status >= 500

/** The response of a path, polled every `everyMillis` when given; undefined requests nothing. */
export const useAsked = <A>(path: string | undefined, everyMillis?: number): Asked<A> => {
  const [kept, keep] = useState<{ readonly path: string | undefined; readonly asked: Asked<A> }>({
    path,
    asked: { state: "loading" }
  })
  useEffect(() => {
    if (path === undefined) return undefined
    const stop = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const pauses = makeBackoff()
    const go = async (): Promise<void> => {
      const answer = await ask<A>(path, { signal: stop.signal }).catch(() => undefined)
      if (answer === undefined || stop.signal.aborted) return
      keep((last) =>
        answer.state === "failed" && isPassing(answer.status) && last.path === path && last.asked.state === "ready"
          ? { path, asked: { ...last.asked, lost: answer.words } }
          : { path, asked: answer }
      )
      if (answer.state === "failed" && isPassing(answer.status)) {
        timer = setTimeout(go, pauses.next())
      } else {
        pauses.reset()
        if (everyMillis !== undefined) timer = setTimeout(go, everyMillis)
      }
    }
    void go()
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, [path, everyMillis])
  return kept.path === path ? kept.asked : { state: "loading" }
}
