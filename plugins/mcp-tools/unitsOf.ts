// An amount of atomic units in decimal notation: exact, without trailing zeros. Pure.
export const unitsOf = (amount: bigint, decimals: number): string => {
  const digits = amount.toString().padStart(decimals + 1, "0")
  const whole = digits.slice(0, digits.length - decimals)
  const part = digits.slice(digits.length - decimals).replace(/0+$/, "")
  return part === "" ? whole : `${whole}.${part}`
}
