// A refusal to settle names the payer whenever it is known: the address that claims to have signed, where no check has
// named another.
import { Option } from "effect"
import type { Payment } from "./Payment.ts"
import type { Refusal } from "./Refusal.ts"
import type { Scheme } from "./Scheme.ts"

export const withPayer = (refused: Refusal, payment: Payment, scheme: Scheme): Refusal =>
  Option.isSome(refused.payer)
    ? refused
    : { ...refused, payer: Option.map(scheme.authorization(payment), ({ payer }) => payer) }
