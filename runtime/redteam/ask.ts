// Bare requests to a facilitator under test: the body is sent unchanged, the answer comes back with its status and
// headers, and the two required shapes of payment answers are checked in one place.
import assert from "node:assert/strict"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: any
}

/** Maximum bytes of an answer's body: the target may be hostile, and none of its answers is as long. */
const answerBytesMax = 8_388_608

/** The body's text; rejects once it is longer than allowed. */
export const textOf = async (response: Response): Promise<string> => {
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > answerBytesMax) throw new Error(`an answer of more than ${answerBytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

/**
 * Posts a body to a route; strings and bytes are sent unchanged. Waits at most `waitMs`, default 30 000. A redirect is
 * the answer, because the target must not choose the addresses that this machine asks.
 */
export const post = async (
  url: string,
  body: unknown,
  waitMs = 30_000,
  headers: Record<string, string> = {}
): Promise<Answer> => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" || body instanceof Uint8Array ? (body as BodyInit) : JSON.stringify(body),
    redirect: "manual",
    signal: AbortSignal.timeout(waitMs)
  })
  const text = await textOf(response)
  let json: any
  try {
    json = JSON.parse(text)
  } catch {
    json = undefined
  }
  return { status: response.status, headers: response.headers, text, json }
}

/** A refusal by `/verify`: `isValid` is false and there is a reason. With `reasons` the reason must be one of them. */
export const assertRefusedVerify = ({ json, text }: Answer, reasons?: ReadonlyArray<string>): void => {
  assert.equal(typeof json, "object", `no JSON object: ${text.slice(0, 200)}`)
  assert.equal(json?.isValid, false, `isValid: ${text.slice(0, 300)}`)
  assertReason(json.invalidReason, reasons, text)
}

/**
 * A refusal by `/settle`: `success` is false, there is a reason, and `transaction` and `network` are always strings.
 */
export const assertRefusedSettle = ({ json, text }: Answer, reasons?: ReadonlyArray<string>): void => {
  assert.equal(typeof json, "object", `no JSON object: ${text.slice(0, 200)}`)
  assert.equal(json?.success, false, `success: ${text.slice(0, 300)}`)
  assert.equal(typeof json.transaction, "string", `transaction: ${text.slice(0, 300)}`)
  assert.equal(typeof json.network, "string", `network: ${text.slice(0, 300)}`)
  assertReason(json.errorReason, reasons, text)
}

const assertReason = (reason: unknown, reasons: ReadonlyArray<string> | undefined, text: string) => {
  assert.ok(typeof reason === "string" && reason.length > 0, `no reason: ${text.slice(0, 300)}`)
  if (reasons !== undefined) {
    assert.ok(reasons.includes(reason), `reason ${reason}, expected ${reasons.join(" or ")}: ${text.slice(0, 300)}`)
  }
}

/** A reason in the spelling of a network: `ledger` becomes `stellar` for `stellar:…`. */
export const inDialect = (reason: string, network: string): string =>
  network.startsWith("stellar:") ? reason.replaceAll("ledger", "stellar") : reason
