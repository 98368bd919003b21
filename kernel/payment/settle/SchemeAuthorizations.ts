// The settlement code's questions about authorizations, answered by the schemes that are registered at that moment.
import { Effect, Layer, Option } from "effect"
import { Authorizations } from "../../settlement/Authorizations.ts"
import { Schemes } from "../Scheme.ts"

export const layer = Layer.effect(
  Authorizations,
  Effect.gen(function* () {
    const schemes = yield* Schemes
    return Authorizations.of({
      nonceOf: ({ authorizationKey, scheme }) =>
        Option.getOrUndefined(schemes.find(scheme))?.nonces.nonceOf(authorizationKey),
      useIn: (promised, operationXdr) =>
        Option.match(schemes.find(promised.scheme), {
          onNone: () => "none",
          onSome: ({ nonces }) => nonces.useIn(promised.authorizationKey, promised, operationXdr)
        }),
      movementIn: (promised, executed) => {
        const scheme = schemes.find(promised.scheme)
        // With the scheme's plugin disabled, nothing can read its transaction; we only see that it succeeded.
        if (Option.isNone(scheme)) return { amount: promised.amount }
        const checked = scheme.value.checkExecuted(promised, executed)
        return checked._tag === "Moved" ? checked : undefined
      }
    })
  })
)
