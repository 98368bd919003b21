// HTTP to untrusted hosts, as a port. Names are resolved separately from dialing, and a request goes to exactly the
// given address, even if the name resolves to another by then. It follows no redirect, keeps no cookie, reuses no
// connection and reads up to the given limit. `kernel/http/safeFetch.ts`, its only caller, decides which addresses may
// be dialed.
import { Context, type Effect, Schema } from "effect"

/** A name that does not resolve, a connection that fails, an answer that is too long or too late. */
export class OutboundFailed extends Schema.TaggedError<OutboundFailed>()("OutboundFailed", {
  reason: Schema.Literals(["unresolved", "unreachable", "timeout", "too_large"]),
  /** The name does not exist according to its own name servers, or the host itself refused the connection. */
  isAuthoritative: Schema.optionalKey(Schema.Boolean)
}) {}

/**
 * Names are resolved and hosts are asked on behalf of this caller, so that one caller's silent hosts delay no other's.
 * Empty: the process itself.
 */
export const OnBehalfOf = Context.Reference<string>("tollkeeper/platform/OnBehalfOf", { defaultValue: () => "" })

export type AnswerHead = Pick<OutboundAnswer, "status" | "headers">

/**
 * Created for an answer when its head is read. It receives each chunk of the body in order; the first chunk for which
 * it returns true is the last one read. `pause`: this chunk may be the last, and is the last if only blanks follow for
 * a moment. Undefined reads to the end.
 */
export type BodyReader = (head: AnswerHead) => ((chunk: Uint8Array) => boolean | "pause") | undefined

export interface OutboundRequest {
  /** http or https. */
  readonly url: string
  /** The IP address to connect to; TLS still checks the certificate for the URL's name. */
  readonly address: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  /** Absent: none. */
  readonly body?: Uint8Array
  /** From the first packet to the last byte. */
  readonly timeoutMillis: number
  /** Maximum body bytes; a longer answer fails. */
  readonly bytesMax: number
  readonly reader?: BodyReader | undefined
  /** A body in a supported coding (gzip, deflate, br) is returned decoded, and its head then lists no coding. */
  readonly decodes?: boolean | undefined
  /**
   * A body that is too long, too late, cut off or framed wrongly is returned as far as it came, and marked, because it
   * has been paid for. It is late when it has not ended this many milliseconds after the first packet.
   */
  readonly partMillis?: number | undefined
}

export interface OutboundAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Only with `partMillis`: the reason why the rest of the body is missing. `malformed`: its framing is unreadable. */
  readonly cut?: "timeout" | "too_large" | "unreachable" | "malformed"
}

export class Outbound extends Context.Service<
  Outbound,
  {
    /** Every address of a name, IPv4 and IPv6. */
    readonly resolve: (host: string) => Effect.Effect<ReadonlyArray<string>, OutboundFailed>
    /** Every TXT record of a name, each with its strings joined. */
    readonly texts: (host: string) => Effect.Effect<ReadonlyArray<string>, OutboundFailed>
    readonly send: (request: OutboundRequest) => Effect.Effect<OutboundAnswer, OutboundFailed>
  }
>()("tollkeeper/platform/Outbound") {}
