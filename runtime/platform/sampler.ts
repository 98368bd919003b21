// Which traces are sent, and which lines of requests with them. A trace begins with a request, here or elsewhere: what
// a process does by itself is never sent, so an idle one sends nothing. The samplers that `OTEL_TRACES_SAMPLER` names
// are here rather than in a tracer, whose spans cost as much when they are not sent. A span is active for nobody but
// its own children, which learn of it from their fiber: a tracer that made it active for each step would be asked at
// each, of every request, for libraries of which this process has none.
import { type Logger, Option, References, Tracer } from "effect"
import { isOfRequest } from "../logging.ts"

export interface Sampler {
  /** Of the traces that begin here, between 0 and 1. */
  readonly ratio: number
  /** Whether a trace that a caller began is sent, by its id. */
  readonly keeps: (traceId: string) => boolean
  /** Whether what a caller decided for its trace counts. */
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
  const ratio = kind === "always_off" ? 0 : kind === "traceidratio" ? ratioOf(variables["OTEL_TRACES_SAMPLER_ARG"]) : 1
  const bound = BigInt(Math.round(ratio * 2 ** 32)) << (ratioBits - 32n)
  const keeps = (traceId: string) => BigInt.asUintN(Number(ratioBits), BigInt(`0x${traceId}`)) < bound
  return { isParentBased, ratio, keeps }
}

type SpanOptions = Parameters<Tracer.Tracer["span"]>[0]

const unsent = (options: SpanOptions) => Tracer.nativeTracer.span({ ...options, sampled: false })

/**
 * The tracer for requests alone, of which the sampler sends some; whatever is below a span that is not sent is not sent
 * either. What is not sent never reaches the tracer, which sends all that does: of a trace that begins here it is drawn
 * before there is an id.
 */
export const forRequests = (tracer: Tracer.Tracer, { isParentBased, keeps, ratio }: Sampler): Tracer.Tracer => {
  const isSent = (options: SpanOptions): boolean => {
    const parent = Option.getOrUndefined(options.parent)
    if (parent === undefined) return options.kind === "server" && Math.random() < ratio
    return parent._tag === "Span" || isParentBased ? parent.sampled : keeps(parent.traceId)
  }
  return { span: (options) => (isSent(options) ? tracer.span({ ...options, sampled: true }) : unsent(options)) }
}

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
