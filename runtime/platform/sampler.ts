// Decides which traces are sent, and which request lines with them. A trace begins with a request, here or elsewhere:
// background work is never sent, so an idle process sends nothing. The samplers of `OTEL_TRACES_SAMPLER` are
// implemented here and not in a tracer, because a tracer's spans cost as much if they are not sent. A span is active
// only for its own children, which find it in their fiber. A tracer that made it active for each step would be called
// at each step of every request, for instrumentation libraries that this process does not load.
import { type Logger, Option, References, Tracer } from "effect"
import { isOfRequest } from "../logging.ts"

interface Sampler {
  /** Share of the traces that begin here, between 0 and 1. */
  readonly ratio: number
  /** Whether a trace with this id that a caller began is sent. */
  readonly keeps: (traceId: string) => boolean
  /** Whether a caller's sampling decision is honored. */
  readonly isParentBased: boolean
}

/** Compares the id's last 56 bits with the ratio. */
const ratioBits = 56n

const ratioOf = (text: string | undefined): number => {
  const ratio = Number(text ?? "1")
  return Number.isFinite(ratio) && ratio >= 0 && ratio <= 1 ? ratio : 1
}

/** By the usual variables; an unknown sampler keeps everything, by the specification. */
export const samplerOf = (variables: Readonly<Record<string, string | undefined>>): Sampler => {
  const name = variables["OTEL_TRACES_SAMPLER"] ?? "parentbased_always_on"
  const isParentBased = name.startsWith("parentbased_")
  const kind = name.replace("parentbased_", "")
  const ratio = kind === "always_off" ? 0 : kind === "traceidratio" ? ratioOf(variables["OTEL_TRACES_SAMPLER_ARG"]) : 1
  const bound = BigInt(Math.round(ratio * 2 ** 32)) << (ratioBits - 32n)
  const keeps = (traceId: string) => BigInt.asUintN(Number(ratioBits), BigInt(`0x${traceId}`)) < bound
  return { isParentBased, ratio, keeps }
}

type SpanOptions = Parameters<Tracer.Tracer["span"]>[0]

const unsent = (options: SpanOptions) => Tracer.nativeTracer.span({ ...options, sampled: false })

/**
 * A tracer only for requests, of which the sampler sends some; no span below an unsent span is sent. Unsampled spans
 * never reach the tracer, which sends all its spans: for a trace that begins here we decide before it has an id.
 */
export const forRequests = (tracer: Tracer.Tracer, { isParentBased, keeps, ratio }: Sampler): Tracer.Tracer => {
  const isSent = (options: SpanOptions): boolean => {
    const parent = Option.getOrUndefined(options.parent)
    if (parent === undefined) return options.kind === "server" && Math.random() < ratio
    return parent._tag === "Span" || isParentBased ? parent.sampled : keeps(parent.traceId)
  }
  return { span: (options) => (isSent(options) ? tracer.span({ ...options, sampled: true }) : unsent(options)) }
}

/** Messages of a successful verification and of a successful health check. */
const oftenAsked = /^\/(verify$|health(\/|$))/

/**
 * Whether a log line is sent to a collector: all but those of a successful verification or health check in an unsampled
 * trace. A refusal, an error and a settlement are always sent, and so are lines outside a request.
 */
export const isLineSent = (entry: Logger.Options<unknown>): boolean => {
  const { fiber } = entry
  if (fiber.cache.span?.sampled !== false || !isOfRequest(entry)) return true
  const { path, reason, status } = fiber.getRef(References.CurrentLogAnnotations)
  return reason !== undefined || status !== 200 || !oftenAsked.test(String(path))
}
