/** 12,345 */
export const formatNumber = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: 0 });

/** 0.4, 12, 3,456 */
export const formatRate = (value: number): string =>
  value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });

/** 0 %, 0.3 %, 12 % */
export function formatShare(share: number): string {
  const percent = 100 * share;
  return `${percent.toLocaleString("en", { maximumFractionDigits: percent < 10 ? 1 : 0 })} %`;
}
