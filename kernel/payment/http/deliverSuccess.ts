// Delivery of a settle request's success (rules 2). The request owns the success that it claims. It sends it only while
// no other process may have counted this one as dead, and releases it if the request ends in any other way.
import { Effect, Exit } from "effect"
import type { HttpServerRequest } from "effect/http"
import { CurrentDelivery, Deliveries, RequestDelivery } from "../../settlement/delivery/Deliveries.ts"
import type { SettleAnswer } from "../Answer.ts"
import { beingDelivered } from "../answers.ts"

export const makeDeliverSuccess = Effect.map(Deliveries, ({ finish, mayAnswer }) => ({
  /** Runs a request's handler. Its claimed success is delivered with the response, or released. */
  within: <A, E, R>(request: HttpServerRequest.HttpServerRequest, handler: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      const delivery = new RequestDelivery()
      return Effect.onExit(Effect.provideService(handler, CurrentDelivery, delivery), (exit) => {
        if (Exit.isFailure(exit)) delivery.isAnswered = false
        return finish(delivery, request)
      })
    }),
  /** The answer to send: the success itself, or an answer that leaves the success to the next request. */
  answerNow: Effect.fnUntraced(function* (answer: SettleAnswer) {
    const delivery = yield* CurrentDelivery
    if (answer._tag !== "Settled" || answer.record === undefined || delivery === undefined) return answer
    if (!(yield* mayAnswer(delivery))) return beingDelivered(answer.record)
    delivery.isAnswered = true
    return answer
  })
}))
