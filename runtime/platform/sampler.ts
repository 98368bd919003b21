// Which traces are sent, and which lines of requests with them. A trace begins with a request, here or elsewhere: what
// a process does by itself is never sent, so an idle one sends nothing. For a tracer that has none of its own there are
// the samplers that `OTEL_TRACES_SAMPLER` names, which decide at the root by the trace id. A span is active for nobody
// but its own children, which learn of it from their fiber: a tracer that made it active for each step would be asked
// at each, of every request, for libraries of which this process has none.
import { type Logger, Option, References, Tracer } from "effect"
import { isOfRequest } from "../logging.ts"

export interface Sampler {
  /** Whether a trace is sent, by its id. */
  readonly keeps: (traceId: string) => boolean
  /** Whether what a caller decided for the trace counts. */
  readonly isParentBased: boolean
}

/** The last 56 bits of the id below the ratio's share of them. */
const ratioBits = 56n

const ratioOf = (text: string | undefined): number => {
  const ratio = Number(text ?? "1")
  return Number.isFinite(ratio) && ratio >= 0 && ratio <= 1 ? ratio : 1
}

/** By the usual variables; an unknown word keeps everything, as the specification has it. */
export const samplerOf = (variables: Readonly<Record<string, string | undefined>>): Sampler => {
  const name = variables["OTEL_TRACES_SAMPLER"] ?? "parentbased_always_on"
  const isParentBased = name.startsWith("parentbased_")
  const kind = name.replace("parentbased_", "")
  if (kind === "always_off") return { isParentBased, keeps: () => false }
  if (kind !== "traceidratio") return { isParentBased, keeps: () => true }
  const bound = BigInt(Math.round(ratioOf(variables["OTEL_TRACES_SAMPLER_ARG"]) * 2 ** 32)) << (ratioBits - 32n)
  return { isParentBased, keeps: (traceId) => BigInt.asUintN(Number(ratioBits), BigInt(`0x${traceId}`)) < bound }
}

const unsent = (options: Parameters<Tracer.Tracer["span"]>[0]) =>
  Tracer.nativeTracer.span({ ...options, sampled: false })

/** The tracer for requests alone; whatever is below a span that is not sent is not sent either. */
export const forRequests = (tracer: Tracer.Tracer): Tracer.Tracer => ({
  span: (options) => {
    const parent = Option.getOrUndefined(options.parent)
    const isSent = parent === undefined ? options.kind === "server" : parent._tag === "ExternalSpan" || parent.sampled
    return isSent ? tracer.span(options) : unsent(options)
  }
})

/** The tracer with a sampler: children follow their parent; a caller's word counts where the sampler says so. */
export const sampled = (tracer: Tracer.Tracer, sampler: Sampler): Tracer.Tracer => ({
  ...tracer,
  span: (options) => {
    const parent = Option.getOrUndefined(options.parent)
    if (parent !== undefined) {
      const isDecided = parent._tag === "Span" || sampler.isParentBased
      return tracer.span(isDecided ? options : { ...options, sampled: sampler.keeps(parent.traceId) })
    }
    const span = tracer.span(options)
    return sampler.keeps(span.traceId) ? span : unsent(options)
  }
})

/** What a verification and a look at health are told by when all is well. */
const oftenAsked = /^\/(verify$|health(\/|$))/

/**
 * Whether a line of the log is sent to a collector: all but those that say that a verification or a look at health went
 * well, in a trace that is not sent. A refusal, a fault and a settlement always are, and so is what is no request's.
 */
export const isLineSent = (entry: Logger.Options<unknown>): boolean => {
  const { fiber } = entry
  if (fiber.cache.span?.sampled !== false || !isOfRequest(entry)) return true
  const { path, reason, status } = fiber.getRef(References.CurrentLogAnnotations)
  return reason !== undefined || status !== 200 || !oftenAsked.test(String(path))
}
